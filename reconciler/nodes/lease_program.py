"""The program that holds a node's lease, in POSIX sh: what it needs is there wherever sshd and Docker are.

It runs under the SSH session that carries the node's effects, for as long as the lease is held:

* The lock is flock(2) on a file, so the kernel frees it when its holders are gone. Two processes hold it: `main`, which
  answers heartbeats, and a watchdog beside it, which measures the silence by the node's own uptime.
* When the heartbeats stop, the lease is broken or one of the two dies, the SSH session is ended first (its sshd
  process, which the login may kill), and only when that is gone, so is the lock. A controller that wakes up after a
  long sleep has no connection any more over which a late effect could come.
* A note beside the lock says who has it. When it is not the holder's own any more, the lease is broken.

The folder is for whoever may use the Docker socket, and for nobody else: its group and mode are the socket's. Thus no
other user can plant links in it, and the kernel's rules for sticky folders (`fs.protected_regular`) do not matter.
"""

import shlex
from typing import Literal

Verb = Literal["take", "look", "break"]

BEAT_S = 3.0
"""Seconds between heartbeats."""

LAPSE_S = 15
"""Seconds without a heartbeat after which the lease has lapsed: as long as SSH itself waits for a silent peer."""

MARK = "@@fleet lease "
"""Begins each line that the program says: start-up files of login shells may say things, too."""

_PROGRAM = r"""
exec 2>/dev/null
set -f
LC_ALL=C; export LC_ALL
PATH="$PATH:/usr/local/sbin:/usr/sbin:/sbin:/usr/bin:/bin"; export PATH
trap '' HUP PIPE
main=$$

say() { printf '%s%s\n' "$mark" "$*"; }
fail() { say "error $*"; exit 0; }
pause() { sleep "0.$1" || sleep 1; }
now() { read -r now rest </proc/uptime; now=${now%.*}; }
is_number() { case $1 in ''|*[!0-9]*|0?*|????????????????*) return 1; esac; }

look_at() { # PID: its state, parent and start
  line=; read -r line <"/proc/$1/stat" || return 1
  set -- ${line##*) }
  state=$1 parent=$2 start=${20}
}
is_alive() { look_at "$1" && [ "$start" = "$2" ] && [ "$state" != Z ]; } # PID START
end() { # PID START: returns when it has ended; 1 when it may not be ended
  while is_alive "$1" "$2"; do
    kill -9 "$1" || return 1
    pause 1
  done
}

find_session() { # the sshd process that carries us
  session=$main
  while look_at "$session" && session=$parent && [ "$session" -gt 0 ]; do
    comm=; read -r comm <"/proc/$session/comm"
    case $comm in sshd*|dropbear*)
      kill -0 "$session" && look_at "$session" || fail no-session
      session_start=$start
      return
    esac
  done
  fail no-session
}

rights_of() { set -- $(ls -nd$1 -- "$2"); mode=$1 user=$3 group=$4; } # OPTION PATH
make_folder() {
  umask 077
  mkdir "$dir" || return
  chgrp "$socket_group" "$dir"
  chmod "$rights" "$dir"
}
no_folder() { [ -w "$1" ] && fail full "$1"; fail no-folder "$1"; }
open_folder() {
  rights_of L "$socket"
  socket_group=$group everybody= rights=2770 mask=007
  case $mode in ????????w*) everybody=1 rights=777 mask=000; esac
  if [ "$verb" = take ]; then [ -e "$dir" ] || make_folder || [ -e "$dir" ] || no_folder "${dir%/*}"
  elif [ ! -e "$dir" ]; then say free; exit 0
  fi
  for try in 1 2 3; do [ -w "$dir" ] && [ -x "$dir" ] && break; pause 3; done # whoever makes it now is not done yet
  rights_of '' "$dir"
  case $mode in d*) ;; *) fail unsafe "$dir"; esac
  [ "$user" = 0 ] || [ "$user" = "$(id -u)" ] || [ "$group" = "$socket_group" ] || [ "$everybody" ] ||
    fail unsafe "$dir"
  [ -w "$dir" ] && [ -x "$dir" ] || fail denied "$dir"
  umask "$mask"
  [ -e "$dir/lock" ] || (set -C; : >"$dir/lock") || [ -e "$dir/lock" ] || fail full "$dir"
  [ -r "$dir/lock" ] && command exec 9<"$dir/lock" || fail denied "$dir/lock"
}
is_in_place() { [ "$dir/lock" -ef "/proc/$main/fd/9" ]; }

lock() { # x or s, exclusive or shared; 1 when somebody has it
  if command -v flock >/dev/null; then flock -n "-$1" 9 9<&9
  elif command -v python3 >/dev/null; then python3 -I -c '
import fcntl, sys
try:
    fcntl.flock(9, fcntl.LOCK_NB | (fcntl.LOCK_EX if sys.argv[1] == "x" else fcntl.LOCK_SH))
except BlockingIOError:
    sys.exit(1)
except OSError:
    sys.exit(66)' "$1" 9<&9
  else fail no-flock
  fi
  case $? in 0) ;; 1) return 1 ;; *) fail no-lock "$dir/lock"; esac
}

read_note() { # who has the lease, or had it last; no fence when the note is damaged, or there is none
  head= claim= fence=
  { read -r head; read -r claim; } <"$dir/note"
  set -- $head
  [ "$1" = fleet-lease ] && is_number "$2" && is_number "$3" || return 1
  fence=$2 since=$3 its_session=$4 its_session_start=$5 its_main=$6 its_main_start=$7
}
write_note() { # CLAIM: with $fence and $since; 1 when the disk is full
  note="fleet-lease $fence $since $session $session_start $main $main_start"
  rm -f "$dir/.note.$main"
  (set -C; printf '%s\n%s\n' "$note" "$1" >"$dir/.note.$main") && [ "$(cat "$dir/.note.$main")" = "$note
$1" ] && mv -f "$dir/.note.$main" "$dir/note" && return
  rm -f "$dir/.note.$main"
  return 1
}
is_mine() { line=; read -r line <"$dir/note"; [ "$line" = "$note" ] && is_in_place; }
tell_holder() { # WORD
  now
  if read_note; then say "$1 $fence $((now - since)) $claim"; else say "$1 - -"; fi
}

is_own_session() { [ "$its_session" = "$session" ] && [ "$its_session_start" = "$session_start" ]; }
end_former() { # the earlier session of this claim, and the program in it
  is_own_session || end "$its_session" "$its_session_start" || return
  is_alive "$its_main" "$its_main_start" && kill -s KILL -- "-$its_main" # its watchdog is of its group
  end "$its_main" "$its_main_start"
}
count_fence() { # the same number for the same claim, the next one for another; after a lost note one never used before
  now
  former=none
  read_note || { fence=$now since=$now; return; }
  former=same
  [ "$claim" = "$mine" ] || former=other fence=$((fence + 1)) since=$now
  [ "$since" -le "$now" ] || since=$now # the node was booted
}
watch() {
  trap 'now; last=$now' USR1
  now; last=$now
  exec </dev/null
  say "taken $fence $(cat /proc/sys/kernel/random/boot_id) $former"
  exec >/dev/null
  while sleep 1 9<&-; do
    now
    [ $((now - last)) -lt "$lapse" ] && is_alive "$main" "$main_start" && is_mine || break
  done
  while ! end "$session" "$session_start"; do pause 5; done
  kill -9 "$main"
}
take() {
  find_session
  look_at "$main"; main_start=$start
  held=1
  for try in 1 2 3 4; do
    open_folder
    lock x && is_in_place && held= && break
    read_note && [ "$claim" = "$mine" ] && end_former
    pause 3 # who looks has the lock for a moment, too
  done
  [ -z "$held" ] || { tell_holder held; exit 0; }
  count_fence
  write_note "$mine" || fail full "$dir"
  watch &
  dog=$!
  answer
  while ! end "$session" "$session_start"; do pause 5; done
  kill -9 "$dog"
}
answer() { # until the end of input, or of the lease
  while read -r word; do
    if [ "$word" = release ]; then
      kill -9 "$dog"; wait "$dog"
      exec 9<&-
      say released
      exit 0
    fi
    is_mine && kill -USR1 "$dog" || return
    touch -c "$dir" "$dir/lock" "$dir/note" # or a cleaner of old files takes them away
    say "beat $word"
  done
}
look() {
  open_folder
  if lock s; then say free; else tell_holder held; fi
}
break_held() {
  open_folder
  if lock x; then say free; return; fi
  holder=$(tell_holder broken)
  now
  read_note || fence=$now its_session=
  fence=$((fence + 1)) since=$now session=0 session_start=0 main_start=0
  write_note broken
  for try in 1 2 3 4 5 6 7 8; do
    lock x && break
    pause 5
    if [ "$try" = 4 ] && [ "$its_session" ]; then end_former; fi
  done
  lock x || fail stuck "${its_main:-?}"
  printf '%s\n' "$holder"
}
"""


def script(verb: Verb, engine: str, socket: str, claim: str = "") -> str:
    """The program with its values, for a POSIX sh. `engine` names the lock, `claim` is one line."""
    values = {
        "verb": verb,
        "dir": f"/tmp/fleet-lease-{engine}",  # noqa: S108 - see above
        "socket": socket,
        "mine": claim,
        "lapse": str(LAPSE_S),
        "mark": MARK,
    }
    given = "".join(f"{name}={shlex.quote(value)}\n" for name, value in values.items())
    verbs = {"take": "take", "look": "look", "break": "break_held"}
    return f"{given}{_PROGRAM}{verbs[verb]}\n"
