"""A worker that answers every message with itself, or does what the message says."""

from __future__ import annotations

import os
import sys
import time

from optpart.base.children.caller import Caller


def main() -> None:
    caller = Caller()
    while True:
        match caller.receive():
            case ("exit", code):
                sys.exit(code)
            case ("die", number):
                os.kill(os.getpid(), number)
            case "print":
                print("in between", flush=True)
            case "pid":
                caller.send(os.getpid())
            case "when":
                caller.send(caller.started)
            case "sleep":
                time.sleep(1000)
            case "close":
                caller._channel.close()
                time.sleep(1000)
            case message:
                caller.send(message)
