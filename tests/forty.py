"""A host of forty VMs, most of them alike."""

KINDS = {
    "service": (15, 'app = [{ kind = "periodic", run = "2ms", period = "10ms" }]'),
    "batch": (12, 'vcpus = 2\napp = [{ kind = "hog", instance = 2 }]'),
    "idle": (12, ""),
}
HOST = """\
name = "forty"
[run]
duration = "200ms"
warmup = "50ms"
replications = 2
[host]
profile = "exact"
pcpus = 16
scheduler = "credit"
[domain.dom0]
driver_domain = true
[domain.web]
nic = { driver_domain = "dom0" }
app = [{ kind = "web-server" }]
[client.http]
kind = "open-loop"
server = "web"
rate = 500
"""
FORTY = HOST + "".join(
    f"[domain.{kind}{number:02}]\n{text}\n" for kind, (count, text) in KINDS.items() for number in range(1, count + 1)
)
