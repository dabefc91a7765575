"""The page of `gangplan serve`: what the service has for it, and the page itself in a real browser, where one is."""

from __future__ import annotations

import json
import re
import shutil
import signal
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from starlette.testclient import TestClient

from gangplan.doors.app import build
from gangplan.doors.core import Core, encoded
from gangplan.doors.page import EXAMPLES, STATIC
from gangplan.doors.pictures import holdings
from gangplan.doors.store import Store
from gangplan.instances import dump
from gangplan.instances.documents import from_document
from gangplan.instances.generators import generate
from gangplan.instances.placement import Fleet
from gangplan.scheduler.described import scheduler_of

from .conftest import EVENTS, LIMITS
from .test_app import EASY, HARD
from .test_serving import Service

HOSTILE = '<script>document.title="taken"</script>"\'&\x1b</svg><img src=x onerror=alert(1)>'
CHROMIUM = shutil.which("chromium")


def hostile() -> str:
    """Return a problem whose first op has a name that tries to be markup."""
    document = json.loads(dump(generate("layered", ops=12, layers=3, devices=2, objective="step", seed=1)))
    document["graph"]["names"][0] = HOSTILE
    document.pop("content_hash")
    return json.dumps(document)


def test_the_page_is_whole_and_from_nowhere_else(client: TestClient) -> None:
    """All that the page refers to is served, and its policy lets nothing else in."""
    found = client.get("/")
    policy = found.headers["content-security-policy"]
    assert found.status_code == 200 and "default-src 'none'" in policy and "unsafe" not in policy and ":" not in policy
    names = re.findall(r'(?:href|src)="([^"#]+)"', found.text)
    for file in STATIC.glob("*.js"):
        names += [f"/page/{x}" for x in re.findall(r'from "\./(.+?)"', file.read_text())]
    assert len(names) > 6 and {client.get(name).status_code for name in names} == {200}
    assert client.get("/page/main.js").headers["content-type"].startswith("text/javascript")
    for file in STATIC.iterdir():
        text = file.read_text().replace("http://www.w3.org/2000/svg", "")
        assert not re.search(r"https?:|innerHTML|\sstyle=|\son\w+=\"", text), file
    for name in ("nothing.js", "%2e%2e%2fapp.py", "../app.py"):
        assert client.get(f"/page/{name}").status_code == 404


def test_examples(client: TestClient) -> None:
    """Each example is a problem of the objective that it is called after."""
    found = client.get("/v1/examples").json()["examples"]
    assert [x["name"] for x in found] == list(EXAMPLES)
    for name in EXAMPLES:
        assert from_document(client.get(f"/v1/examples/{name}").json()).objective == name
    assert client.get("/v1/examples/none").json()["error"]["field"] == "example"


def test_a_plan_is_drawn(client: TestClient) -> None:
    """The plan of a solve is a document by itself; its picture is well-formed, whatever ops are called."""
    problem = json.loads(hostile())
    found = client.post("/v1/solve", json={"problem": problem, "time_limit": 10}).json()
    plan = client.get(f"/v1/solves/{found['id']}/plan").json()
    assert plan == found["answer"]["plan"]
    drawn = client.post("/v1/picture", json={"problem": problem, "plan": plan, "status": "x"}).json()
    titles = [x.text or "" for x in ElementTree.fromstring(drawn["svg"]).iter("{http://www.w3.org/2000/svg}title")]
    assert drawn["panels"] == {} and any(HOSTILE.replace("\x1b", "\ufffd") in text for text in titles)
    assert "<script" not in drawn["svg"] and "<img" not in drawn["svg"]
    for more, field in (({"panel": "x"}, "panel"), ({"bound": "x"}, ""), ({"problem": EASY}, "plan")):
        wrong = client.post("/v1/picture", json={"problem": problem, "plan": plan, **more})
        assert wrong.status_code == 422 and field in wrong.text, wrong.text
    assert client.get("/v1/solves/none/plan").status_code == 404


def test_a_plan_of_a_solve_that_runs(client: TestClient) -> None:
    """A solve that is not over is said to have no plan yet; one that was cancelled before it began has none."""
    running, queued = (
        client.post("/v1/solve", json={"problem": HARD, "time_limit": 25, "wait": 0}).headers["location"] for _ in "ab"
    )
    for where in (running, queued):
        found = client.get(f"{where}/plan")
        assert found.status_code == 409 and "is not over yet" in found.json()["error"]["problem"]
    for where in (queued, running):
        client.delete(where)
    assert client.get(f"{queued}/plan").status_code == 404


def test_a_cluster_is_drawn(client: TestClient) -> None:
    """A cluster is drawn with its jobs, empty too; what is not there cannot be held."""
    cluster = encoded(Fleet.regular(1, 2, 4))
    given = {"cluster": cluster, "held": {HOSTILE: {"node0": [0, 1]}, "cores": {"node0": []}}, "down": ["node1"]}
    for body, told in ((given, "2 of 8 GPUs"), ({"cluster": cluster}, "0 of 8 GPUs")):
        svg = client.post("/v1/picture", json=body).json()["svg"]
        assert told in svg and ElementTree.fromstring(svg).attrib["viewBox"] and "<script" not in svg
    mixed = encoded(Fleet.regular(1, 3, 4, gpu_type={"H100": 1, "A100": 2}))
    drawn = client.post("/v1/picture", json={"cluster": mixed, "held": {"a": {"node0": [0], "node2": [1]}}}).json()
    assert "H100" in drawn["svg"] and "A100" in drawn["svg"] and "2 of 12 GPUs" in drawn["svg"]
    assert "no job on 20 nodes" in client.post("/v1/picture", json={"cluster": "20x8"}).json()["svg"]
    for held in ({"a": {"node0": [4]}}, {"a": {"x": [0]}}, {"a": {"node0": [0, 0]}}, {"a": 1}, [1]):
        assert client.post("/v1/picture", json={"cluster": cluster, "held": held}).status_code == 422
    assert client.post("/v1/picture", json={"cluster": "5000x8"}).json()["error"]["field"] == "cluster"


def test_a_log_is_steps(client: TestClient) -> None:
    """After each step of a log jobs hold what they held then; other text is refused by its line."""
    client.put("/v1/sessions/a", json={"cluster": "2x8"})
    core, held, down = Core(scheduler_of({"cluster": "2x8"})), {}, []
    client.post("/v1/sessions/a/events", json=EVENTS)
    log = client.get("/v1/sessions/a/log").text
    frames = client.post("/v1/replay", json={"log": log}).json()["frames"]
    assert len(frames) == len(EVENTS)
    for event, frame in zip(EVENTS, frames, strict=True):
        core.answer(event)
        held = {job: nodes for job, nodes in (held | frame.get("held", {})).items() if nodes is not None}
        down = frame.get("down", down)
        assert held == holdings(core.scheduler) and frame["now"] == core.scheduler.now
        assert down == core.answer({"event": "state"})["answer"]["down"]
    state = client.get("/v1/sessions/a/cluster").json()
    assert state["held"] == held and state["waiting"] == list(core.scheduler.waiting)
    assert frames[0]["text"].startswith("submit a (8 GPUs)") and "a starts on node" in frames[2]["text"]
    for text in ("", "{}", log.replace('"node1"', '"nodeX"', 1), 1, log[:-2] + 'x"\n'):
        wrong = client.post("/v1/replay", json={"log": text})
        assert wrong.status_code == 422 and "/tmp" not in wrong.text, wrong.text


def test_only_the_page_needs_no_token(folder: Path) -> None:
    """The page is shown to all, and what it asks for to those with the token."""
    app, _ = build(Store(folder), LIMITS, "secret-secret-secret")
    with TestClient(app) as client:
        found = {path: client.get(path).status_code for path in ("/", "/page/main.js", "/v1/examples", "/metrics")}
    assert list(found.values()) == [200, 200, 401, 401]


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    """Return a running service with a session that has waiting jobs."""
    found = Service(tmp_path_factory.mktemp("page") / "state")
    found.http.put("/v1/sessions/s", json={"cluster": "2x8"})
    found.http.post("/v1/sessions/s/events", json=[*EVENTS[:5], {"event": "submit", "job": HOSTILE, "gpus": 16}])
    yield found
    found.end(signal.SIGKILL)


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    """Return a headless Chromium."""
    playwright = pytest.importorskip("playwright.sync_api")
    if CHROMIUM is None:
        pytest.skip("there is no chromium")
    with playwright.sync_playwright() as started:
        found = started.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield found
        found.close()


@pytest.fixture
def page(browser: Any, service: Service) -> Iterator[Callable[..., Any]]:
    """Return a function that opens a view; nothing that it does may be an error, or against its policy."""
    wrong: list[str] = []

    def opened(view: str = "", at: str = str(service.http.base_url), **how: Any) -> Any:
        found = browser.new_context(**how).new_page()
        found.set_default_timeout(60_000)
        found.on("console", lambda line: line.type == "error" and wrong.append(line.text))
        found.on("pageerror", lambda error: wrong.append(str(error)))
        found.on("dialog", lambda dialog: (wrong.append("dialog"), dialog.dismiss()))
        found.goto(f"{at}/{view}")
        return found

    yield opened
    assert [x for x in wrong if not re.search("status of 4(01|22)", x)] == []


def said(found: Any, where: str, pattern: str) -> None:
    """Wait until the page says something somewhere; its policy forbids functions that wait."""
    found.locator(where, has_text=re.compile(pattern)).wait_for(state="attached")


def chosen(found: Any, problem: str, seconds: int) -> Any:
    """Solve a problem of a file."""
    found.set_input_files("#problem-file", {"name": "p.json", "mimeType": "", "buffer": problem.encode()})
    said(found, "#standing", "p.json is chosen")
    found.fill("#seconds", f"{seconds}")
    found.click("text=Solve >> nth=-1")
    return found


def test_keyboard_only(page: Callable[..., Any]) -> None:
    """From an example to its plan, and through what is drawn, by keys alone."""
    found = page()
    found.wait_for_selector("#example option >> nth=5", state="attached")
    press = found.keyboard.press
    for _ in range(30):
        press("Tab")
        if found.evaluate("document.activeElement.id") == "example":
            break
    press("ArrowDown")  # a step
    for _ in range(30):
        press("Tab")
        if found.evaluate("document.activeElement.id") == "seconds":
            break
    press("Control+a")
    found.keyboard.type("5")
    press("Enter")
    found.wait_for_selector("#plan-picture svg")
    assert re.match(r"(Optimal|Feasible)", found.inner_text("#standing"))
    assert "best plan" in found.inner_text("#figures") and found.locator("#chart path.plan").count() == 2
    for _ in range(30):
        press("Tab")
        if found.evaluate("document.activeElement.className") == "scroll":
            break
    press("ArrowRight")
    first = found.inner_text("#plan-picture .details")
    press("End")
    assert "device" in first and found.inner_text("#plan-picture .details") != first
    with found.expect_download() as download:
        found.click("#plan-json")
    plan = json.loads(Path(download.value.path()).read_text())
    assert plan["kind"] == "step_plan" and from_document(plan)


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_narrow_and_dark(page: Callable[..., Any], scheme: str) -> None:
    """On 360 pixels nothing but pictures scrolls sideways, and the reader's colours are used."""
    for view, ready in (("", "#solve"), ("#cluster", "#cluster-picture svg"), ("#replay", "#log-file")):
        found = page(view, viewport={"width": 360, "height": 640}, color_scheme=scheme)
        found.wait_for_selector(ready)
        assert found.evaluate("document.documentElement.scrollWidth") <= 360
        paper = re.findall(r"\d+", found.evaluate("getComputedStyle(document.body).backgroundColor"))
        assert (int(paper[0]) < 60) is (scheme == "dark")


def test_names_are_text(page: Callable[..., Any]) -> None:
    """A name from a file that tries to be markup is shown as it is, by every view."""
    found = chosen(page(), hostile(), 5)
    found.wait_for_selector("#plan-picture svg")
    assert found.title() == "gangplan" and found.locator("main script, main img").count() == 0
    found.goto(found.url.rstrip("/") + "/#cluster")
    found.wait_for_selector("#cluster-picture svg")
    found.locator("#waiting button").last.click()
    said(found, "#why", "<script>")
    assert found.title() == "gangplan" and found.locator("main script, main img").count() == 0
    found.click("#whatif button")
    said(found, "#why", "^a job of 8 GPUs")


def test_it_keeps_up(page: Callable[..., Any], service: Service) -> None:
    """Left open it shows types, queues with quotas, users and ages, finds jobs, and sees those that come."""
    quotas = {"nlp": {"type": "Quota", "share": 0.25, "most": 0.75}}
    kinds = {"racks": 1, "nodes": 2, "gpus": 4, "gpu_type": {"H100": 1, "A100": 1}}
    service.http.put("/v1/sessions/live", json={"cluster": kinds, "sharing": {"queues": quotas}})
    path, submit = "/v1/sessions/live/events", {"event": "submit", "gpus": 4, "seconds": 600}
    jobs = [{**submit, "job": f"{user}{i}", "user": user, "queue": "nlp"} for i in range(3) for user in ("ann", "bob")]
    service.http.post(path, json=[*jobs, {"event": "decide", "deadline": 2.0}])
    found = page("#cluster")
    found.select_option("#session", "live")
    said(found, "#types", "H100")
    said(found, "#queues", "nlp.*25 %75 %")
    assert found.locator("#running tr").count() + found.locator("#waiting tr").count() == 6
    said(found, "#waiting", r"\d+ s|min")
    found.fill("#search", "ann2")
    said(found, "#waiting-count", "1 found")
    found.fill("#search", "")
    service.http.post(path, json={**submit, "job": "newcomer", "user": "eve"})
    said(found, "#waiting", "newcomer")
    said(found, "#users", "eve")


def test_a_bad_file_is_not_solved(page: Callable[..., Any]) -> None:
    """After a file that is no document nothing is solved, not what was there before either, until another is chosen."""
    found = page()
    asked: list[str] = []
    found.on("request", lambda request: request.method == "POST" and asked.append(request.url))
    found.wait_for_selector("#example option >> nth=5", state="attached")
    for good in ("", json.dumps(EASY)):
        if good:
            chosen(found, good, 5)
            found.wait_for_selector("#plan-picture svg")
        for bad in ("{not json", "[]", "null"):
            asked.clear()
            found.set_input_files("#problem-file", {"name": "bad.json", "mimeType": "", "buffer": bad.encode()})
            said(found, "#standing", "bad.json is not chosen")
            found.wait_for_selector("#error:not([hidden])")
            told = found.inner_text("#error")
            for example in ("", "step", ""):  # to an example and back
                found.select_option("#example", example)
            found.click("text=Solve >> nth=-1")
            said(found, "#standing", "It was refused")
            assert found.inner_text("#error") == told and found.input_value("#problem-file") == "" and asked == []
    found.select_option("#example", "step")
    found.click("text=Solve >> nth=-1")
    found.wait_for_selector("#plan-picture svg")
    assert found.is_hidden("#error")


def test_cancel(page: Callable[..., Any]) -> None:
    """A solve that is cancelled ends with the best plan so far, and says so; one whose bound is to be proved too."""
    found = page()
    found.check("#certify")
    chosen(found, json.dumps(HARD), 300)
    said(found, "#figures", r"best plan \d.*bound \d")
    found.click("#cancel")
    found.wait_for_selector("#plan-picture svg")
    assert "It was cancelled." in found.inner_text("#standing") and found.is_disabled("#cancel")


def test_replay(page: Callable[..., Any], service: Service) -> None:
    """A log that is dropped is gone through by steps, and played to its end."""
    log = service.http.get("/v1/sessions/s/log").content
    found = page("#replay")
    found.set_input_files("#log-file", {"name": "cluster.jsonl", "mimeType": "", "buffer": log})
    found.wait_for_selector("#replay-picture svg")
    assert found.inner_text("#replay-now").startswith("1 of 6, at 0 s: submit a")
    found.focus("#step")
    found.keyboard.press("ArrowRight")
    found.click("#forward")
    said(found, "#replay-now", "3 of 6.*a starts on")
    said(found, "#replay-picture .scroll > svg", "12 of 16 GPUs")
    found.select_option("#speed", "16")
    found.click("#play")
    said(found, "#replay-now", "^6 of 6")
    said(found, "#play", "^Play$")
    found.set_input_files("#log-file", {"name": "bad.jsonl", "mimeType": "", "buffer": b"{}"})
    found.wait_for_selector("#error:not([hidden])")
    assert found.is_hidden("#player") and found.input_value("#log-file") == ""


def test_a_token_is_asked_for(page: Callable[..., Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the service needs a token the page asks for it, and keeps it for its tab only."""
    monkeypatch.setenv("GANGPLAN_TOKEN", "secret-secret-secret")
    guarded = Service(tmp_path / "state")
    try:
        found = page(at=str(guarded.http.base_url))
        for word in ("wrong", "secret-secret-secret"):
            found.wait_for_selector("#ask-token[open]")
            found.fill("#token", word)
            found.keyboard.press("Enter")
        found.wait_for_selector("#example option >> nth=5", state="attached")
        assert found.evaluate("[localStorage.length, sessionStorage.length, document.cookie]") == [0, 1, ""]
    finally:
        guarded.end(signal.SIGKILL)
