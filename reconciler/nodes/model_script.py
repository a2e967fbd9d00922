"""Looks at a model on a node, by one POSIX sh script and a pure parser of what it prints.

The script follows links as the kernel would inside the rank's container: component by component, an absolute link from
the container's root, through the mounts. What has no mount is not there for the container. Beside POSIX it uses what
GNU and BusyBox have alike: `readlink`, `stat -c`, `find -maxdepth`, `grep -o`, `head -c`, `sha256sum`.
"""

from collections.abc import Iterator, Sequence

from reconciler.core.models import SMALL_BYTES, BadLink, ModelFacts, ModelFile, ModelPlace, There
from reconciler.nodes.facts import sections

CONFIG_BYTES = 256 * 1024
MOST_FILES = 5000
DEEPEST = 6

WALK = r"""
exec 2>/dev/null
LC_ALL=C; export LC_ALL
PATH="$PATH:/usr/local/sbin:/usr/sbin:/sbin"; export PATH
mounts=0
below() {
  host= base= longest=-1 k=0
  [ $mounts -gt 0 ] || { host=$1; return; }
  while [ $k -lt $mounts ]; do
    eval "source=\$source$k target=\$target$k"
    case $1/ in
      "$target"/*) [ ${#target} -gt $longest ] && {
        longest=${#target} base=$source host=$source${1#"$target"}
      } ;;
    esac
    k=$((k + 1))
  done
}
walk() {
  left=$1 end= hops=0 trail= found=gone
  while [ -n "$left" ]; do
    left=${left#/}
    word=${left%%/*}
    case $left in */*) left=${left#*/} ;; *) left= ;; esac
    case $word in
      '' | .) continue ;;
      ..) end=${end%/*}; continue ;;
    esac
    below "$end/$word"
    if [ -n "$host" ] && [ -h "$host" ]; then
      hops=$((hops + 1))
      [ $hops -gt 40 ] && { end=$end/$word; return; }
      trail="$trail$host
"
      text=$(readlink "$host")
      case $text in /*) end= ;; esac
      left=$text/$left
    else end=$end/$word
    fi
  done
  below "$end"
  if [ -z "$host" ]; then found=outside
  elif [ -e "$host" ]; then found=in
  fi
}
denied() {
  above=$1
  while [ -n "$above" ] && [ ! -e "$above" ]; do above=${above%/*}; done
  [ ! -x "${above:-/}" ]
}
take() {
  case $1 in
    path:*) path=${1#path:} ;;
    inside:*) inside=${1#inside:} ;;
    mount:*) eval "source$mounts=\$(readlink -f \"\${1#mount:}\") || source$mounts=\${1#mount:}" ;;
    target:*) eval "target$mounts=\${1#target:}"; mounts=$((mounts + 1)) ;;
  esac
}
for given in "$@"; do take "$given"; done
"""
"""Functions that follow a path of the container (`walk`: sets `found`, `host`, `end` and `trail`), and its arguments:
`path:`, `inside:`, and in pairs `mount:` and `target:`."""

SCRIPT = (
    WALK
    + r"""
part() { printf '\n@@fleet %s\n' "$1"; }
part begin
part tools; command -v rsync
part disk
above=$path
while [ -n "$above" ] && [ ! -d "$above" ]; do above=${above%/*}; done
df -P -k "${above:-/}" | awk 'NR == 2 { print $4 }'
below "$inside"; part base; printf '%s\n' "$base"
walk "$inside"
name=
if [ $found = in ] && [ ! -d "$host" ]; then name=${inside##*/}; walk "${inside%/*}"; fi
part place
if [ $found != in ]; then
  if [ -e "$path" ]; then printf 'unseen\t%s\t%s\n' $found "$end"
  elif denied "$path" || { [ -n "$host" ] && denied "$host"; }; then echo unknown
  elif [ -h "$path" ]; then printf 'unseen\t%s\t%s\n' $found "$end"
  else echo absent
  fi
  part end; exit
fi
folder=$host seen=$end
if [ ! -x "$folder" ] || { [ -z "$name" ] && [ ! -r "$folder" ]; }; then echo unknown; part end; exit; fi
[ -n "$name" ] && echo file || echo folder
part real; printf '%s\n' "$folder"
cd "$folder" || exit
stem=$name
case $name in
  *-[0-9][0-9][0-9][0-9][0-9]-of-[0-9][0-9][0-9][0-9][0-9].gguf) stem=${name%-*-of-*}-*-of-${name##*-} ;;
esac
each() {
  if [ -n "$name" ]; then find $follow . -maxdepth 1 -name "$stem" "$@"
  else find $follow . -maxdepth @DEEPEST@ \( -name .git -o -name .cache \) -prune -o "$@"
  fi
}
part files
follow=-L
each -type f -exec stat -L -c '%s %n' {} + | head -n @MOST@
part links
follow=
each -type l -print | head -n @MOST@ | while IFS= read -r link; do
  link=${link#./}
  walk "$seen/$link"
  printf '%s\t%s\t%s\t%s\n' $found "$end" "${host:--}" "$link"
  [ $found = in ] && [ -f "$host" ] && printf 'size\t%s\t%s\n' "$(stat -L -c %s "$host")" "$link"
  printf '%s' "$trail" | sed 's/^/through\t/'
done
part shards
[ -n "$name" ] || for index in ./*.index.json; do
  grep -oE ':[[:space:]]*"[^"]*\.(safetensors|bin)"' "$index" | sed 's/^[^"]*"//; s/"$//' | sort -u
done
part incomplete
case $folder in */snapshots/*) find ../../blobs -maxdepth 1 -name '*.incomplete' | head -n 100 ;; esac
find .cache/huggingface -maxdepth 3 -name '*.incomplete' | head -n 100
part commit; head -n 1 .cache/huggingface/download/config.json.metadata
part config; [ -n "$name" ] || head -c @CONFIG@ config.json
part sums
for given in "$@"; do
  case $given in hash:*)
    file=${given#hash:}
    size=$(stat -L -c %s "./$file") && [ "$size" -le @SMALL@ ] && sha256sum "./$file"
  esac
done
part end
""".replace("@DEEPEST@", str(DEEPEST))
    .replace("@MOST@", str(MOST_FILES))
    .replace("@CONFIG@", str(CONFIG_BYTES))
    .replace("@SMALL@", str(SMALL_BYTES))
)
"""Arguments beside those of `WALK`: `hash:FILE`, whose checksum is told when it is small."""

_THERE: dict[str, There] = {"folder": "folder", "file": "file", "absent": "absent", "unseen": "unseen"}


def words(place: ModelPlace, hashes: Sequence[str] = ()) -> Iterator[str]:
    """The script's arguments for one place."""
    yield f"path:{place.path}"
    yield f"inside:{place.inside}"
    for source, target in place.mounts:
        yield f"mount:{source}"
        yield f"target:{target}"
    yield from (f"hash:{file}" for file in hashes)


def parse(output: str, place: ModelPlace) -> ModelFacts | None:
    """The facts in the script's output; None when it did not run to its end."""
    parts = sections(output)
    if "begin" not in parts or "end" not in parts:
        return None
    state, *ending = _first(parts.get("place", ())).split("\t")
    free = _first(parts.get("disk", ()))
    top = [BadLink("", ending[1], ending[0] == "outside")] if len(ending) == 2 else []
    links = [line.split("\t") for line in parts.get("links", ())]
    return ModelFacts(
        place=place,
        there=_THERE.get(state, "unknown"),
        files=tuple(_files(parts, links)),
        bad_links=(*top, *(_bad_links(links))),
        shards=tuple(dict.fromkeys(parts.get("shards", ()))),
        incomplete=len(parts.get("incomplete", ())),
        config="\n".join(parts.get("config", ())),
        commit=_commit(parts.get("commit", ())),
        through=_through(links, _first(parts.get("real", ()))),
        real=_first(parts.get("real", ())),
        base=_first(parts.get("base", ())),
        disk_free_bytes=int(free) * 1024 if free.isdecimal() else None,
        has_rsync=bool(parts.get("tools")),
    )


def _first(lines: Sequence[str]) -> str:
    return lines[0] if lines else ""


def _files(parts: dict[str, list[str]], links: list[list[str]]) -> Iterator[ModelFile]:
    """What the container sees: of a link, where it leads there, which need not be where it leads on the node."""
    sums = dict(_sum(line) for line in parts.get("sums", ()))
    bad = {fields[3] for fields in links if len(fields) == 4 and fields[0] != "in"}
    ends = {fields[3]: fields[2] for fields in links if len(fields) == 4 and fields[0] == "in"}
    lines = (line.partition(" ") for line in parts.get("files", ()))
    sizes = {name.removeprefix("./"): size for size, _, name in lines}
    sizes |= {fields[2]: fields[1] for fields in links if len(fields) == 3 and fields[0] == "size"}
    for name, size in sorted(sizes.items()):
        if size.isdecimal() and name not in bad:
            yield ModelFile(name, int(size), sums.get(name, ""), ends.get(name, ""))


def _bad_links(links: list[list[str]]) -> Iterator[BadLink]:
    for fields in sorted(links):
        if len(fields) == 4 and fields[0] in {"gone", "outside"}:
            yield BadLink(fields[3], fields[1], fields[0] == "outside")


def _through(links: list[list[str]], folder: str) -> tuple[str, ...]:
    """Links and files of the node outside the model's folder."""
    passed = {fields[1] for fields in links if len(fields) == 2 and fields[0] == "through"}
    ends = {fields[2] for fields in links if len(fields) == 4 and fields[0] == "in"}
    return tuple(sorted(path for path in passed | ends if not path.startswith(f"{folder}/")))


def _sum(line: str) -> tuple[str, str]:
    """`<64 hex>  ./config.json`."""
    digest, _, name = line.partition(" ")
    return name.strip().removeprefix("./"), f"sha256:{digest}"


def _commit(lines: Sequence[str]) -> str:
    first = _first(lines)
    return first if len(first) == 40 and all(digit in "0123456789abcdef" for digit in first) else ""
