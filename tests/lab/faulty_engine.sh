# An engine that fails as engines do, for busybox: `sh faulty_engine.sh MODE PORT [LOG]`.
#
#   phases    slowly through the phases of a boot, then serves
#   says      prints LOG, a recorded log whose first line is "# exit CODE", and ends with that code
#   hang      serves every page, and never answers a question
#   dies      serves, and ends ten seconds later with an error of its GPU
#   eats      takes memory until something stops it
#   quiet     serves, and says nothing
#   flood     ten thousand lines a second, for as long as it serves
#   drown     the same for three seconds, then an error
#   line      one line of five megabytes, then an error
#   binary    bytes that are no text and act on terminals, then an error
mode=$1 port=$2 log=$3
export FAULTY_MODE="${FAULTY_MODE:-$mode}"

reply() {
  printf 'HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %s\r\nConnection: close\r\n\r\n%s' "${#1}" "$1"
}

exchange() {
  read -r _ path _
  length=0
  while IFS= read -r line; do
    line=$(printf %s "$line" | tr -d '\r')
    [ -n "$line" ] || break
    case $line in [Cc]ontent-[Ll]ength:*) length=$(printf %s "${line#*:}" | tr -d ' ') ;; esac
  done
  [ "$length" -eq 0 ] || head -c "$length" >/dev/null
  case $path in
    /health) reply '{"status":"ok"}' ;;
    /v1/models) reply '{"object":"list","data":[{"id":"faulty","object":"model"}]}' ;;
    *) [ "$FAULTY_MODE" != hang ] || sleep 600
       reply '{"choices":[{"message":{"role":"assistant","content":"Paris is the capital of France."}}]}' ;;
  esac
}

serve() { nc -ll -p "$port" -e sh "$0" exchange "$port" & }

fail() {
  echo "ValueError: No available memory for the cache blocks. Try increasing gpu_memory_utilization."
  exit 1
}

flood() {
  yes "INFO 11-29 21:13:41 [loader.py:180] Loading safetensors checkpoint shards, still" | head -n 10000 >/tmp/lines
  while [ "${1:-9999}" -gt 0 ]; do
    cat /tmp/lines
    sleep 1
    set -- $((${1:-9999} - 1))
  done
}

case $mode in
  exchange) exchange ;;
  phases)
    for phase in "Starting to load model" "Loading weights took 1.00 seconds" "torch.compile takes 1.00 s in total" \
      "Capturing CUDA graphs" "Application startup complete."; do
      echo "INFO $phase"
      sleep 1
    done
    serve; wait ;;
  says) read -r _ _ code _ <"$log"; tail -n +2 "$log"; exit "${code%,}" ;;
  hang) echo "INFO Application startup complete."; serve; wait ;;
  dies) serve; sleep 10; echo "CUDA error: an illegal memory access was encountered"; exit 1 ;;
  eats) sleep 3; echo "loading weights"; tail /dev/zero ;;
  quiet) serve; wait ;;
  flood) serve; flood ;;
  drown) flood 3; fail ;;
  line) head -c 5000000 /dev/zero | tr '\0' x; echo; fail ;;
  binary) printf '\033[2J\033]0;owned\007\377\376\000\010broken\n'; fail ;;
esac
