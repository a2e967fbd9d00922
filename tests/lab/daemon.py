"""One question to a Docker daemon, asked past every client: are you there?"""

import socket
from pathlib import Path

PING = b"GET /_ping HTTP/1.0\r\nHost: docker\r\n\r\n"


def answers(path: Path) -> bool:
    with socket.socket(socket.AF_UNIX) as client:
        client.settimeout(5)
        try:
            client.connect(str(path))
            client.sendall(PING)
            return b" 200 " in client.recv(100)
        except OSError:
            return False
