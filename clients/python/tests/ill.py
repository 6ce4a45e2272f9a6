"""Faulty proxy in front of the real server: forwards requests unless a test specifies a fault."""

import http.client
import http.server
import json
import threading
from urllib.parse import urlsplit

# Faults of a request, in addition to (status, headers) or (status, headers, body), which replace the answer.
LOSE = "done, but the answer is lost"
DENY = "done, but answered with 503"
HANG = "not done, and never answered"
TRICKLE = "not done, and answered so slowly that the answer never ends"


class IllServer:
    """`fault(method, path)` returns the fault of a request: None, `LOSE`, `DENY`, `HANG`, `TRICKLE`, or a status and headers that replace the answer."""

    def __init__(self, url, fault=lambda method, path: None):
        self.fault, self.asked, self.drops_idle = fault, [], False
        self.delays = lambda path: None  # Returns when the answer to a request may be sent.
        # `refuses` returns the fault of a report of the ends of these jobs. `held` contains the jobs whose ends an open transaction holds.
        self.refuses, self.held = (lambda jobs: None), set()
        self.finished = []  # The jobs of each report.
        self._behind = urlsplit(url).netloc
        self._over = threading.Event()
        outer = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self):
                outer._answer(self)

            do_GET = do_DELETE = do_POST

            def log_message(self, *_):
                pass

        self._server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._server.server_port}"
        threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True).start()

    def close(self):
        self._over.set()
        self._server.shutdown()
        self._server.server_close()

    def answered(self, method, end):
        """Returns the statuses of the requests whose path ends with `end`, in order."""
        return [status for did, path, status, _ in list(self.asked) if did == method and path.endswith(end)]

    def _answer(self, request):
        body = request.rfile.read(int(request.headers.get("Content-Length", 0)))
        fault = self.fault(request.command, request.path)
        if request.path.endswith("/finish"):
            ends = json.loads(body)["runs"]
            jobs = [end["run"].split(".")[0] for end in ends]
            held = set(self.held)
            self.finished.append(jobs)
            fault = fault or self.refuses(jobs)
            if held.intersection(jobs):
                fault = fault or (200, {}, self._finish_beside_held(request, ends, held))
        if fault is HANG:
            self.asked.append((request.command, request.path, "hangs", dict(request.headers)))
            self._over.wait()
            request.close_connection = True
            return
        if fault is TRICKLE:
            self.asked.append((request.command, request.path, "trickles", dict(request.headers)))
            request.close_connection = True
            try:
                request.wfile.write(b"HTTP/1.1 200 OK\r\nX-Slow: ")
                while not self._over.wait(0.05):
                    request.wfile.write(b".")
            except OSError:
                pass  # The client has closed the connection.
            return
        if isinstance(fault, tuple):
            status, headers, *other = fault
            answer = other[0] if other else json.dumps({"code": "ill", "detail": f"answered with {status}"}).encode()
        else:
            status, headers, answer = self._pass_on(request, body)
            self.delays(request.path)
            if fault is DENY:
                status, answer = 503, b'{"code": "store_unavailable", "detail": "the result of the commit is unknown"}'
        self.asked.append((request.command, request.path, "lost" if fault is LOSE else status, dict(request.headers)))
        if fault is LOSE:
            request.close_connection = True
            return
        # Read before the client can have the answer, because afterwards the test may change it.
        request.close_connection = request.close_connection or self.drops_idle
        request.send_response(status)
        for name, value in headers.items():
            request.send_header(name, value)
        if status != 204:
            request.send_header("Content-Length", str(len(answer)))
        request.end_headers()
        request.wfile.write(answer if status != 204 else b"")

    def _finish_beside_held(self, request, ends, held):
        """Reports the ends that are not held. Returns the answer to all."""
        free = [end for end in ends if end["run"].split(".")[0] not in held]
        told = iter(json.loads(self._pass_on(request, json.dumps({"runs": free}))[2])["runs"] if free else [])
        return json.dumps({"runs": [next(told) if end in free else "held" for end in ends]}).encode()

    def _pass_on(self, request, body):
        connection = http.client.HTTPConnection(self._behind, timeout=60)
        headers = {name: request.headers[name] for name in ("Content-Type", "Idempotency-Key") if name in request.headers}
        connection.request(request.command, request.path, body, headers)
        response = connection.getresponse()
        answer = response.read()
        connection.close()
        return response.status, {"Content-Type": response.headers.get("Content-Type", "")}, answer
