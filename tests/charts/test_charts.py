"""Charts: what they say, that it can be read, and that nothing recorded passes for live."""

import ast
import base64
import inspect
import io
import itertools
import re
from functools import cache
from pathlib import Path

import pandas as pd
import pytest
from coloraide import Color

from casebook import charts, colours, words
from casebook.cases.bookstore import readers
from casebook.cases.bookstore.line import model
from casebook.cases.fetching import bindings, observations
from casebook.charts import curves, figure, tables
from casebook.charts.listings import Listing
from casebook.charts.series import assign_colours, gather
from casebook.charts.timelines import stalls
from casebook.errors import UsageError
from casebook.laboratory import machine_files

#: The pages that figures stand on: the book's and JupyterLab's, light and dark.
GROUNDS = ("#ffffff",), ("#14181e", "#121212", "#111111")


def measured(rows: list[dict], also: dict) -> pd.DataFrame:
    """Literal rows, as if they had been measured here."""
    now = {"source": "live", "measured_at": "2026-11-20T11:05:00Z"}
    return pd.DataFrame([now | row | also for row in rows])


def runs(stack="stage-1-py27", walls=((3, (1.1, 1.2)), (10, (1.3, 1.5))), **also) -> pd.DataFrame:
    """Literal runs: walls by n, one per repeat."""
    rows = [
        {
            "stack": stack,
            "client": "grequests",
            "scheme": "https",
            "n": n,
            "delay_s": 1.0,
            "repeat": repeat,
            "wall_s": wall,
            "effective_concurrency": n / wall,
            "verdict": "concurrent" if n / wall >= 1.5 else "serial",
        }
        for n, times in walls
        for repeat, wall in enumerate(times, 1)
    ]
    return measured(rows, also)


SLOW = ((3, (3.1, 3.2)), (10, (10.2, 10.4)))
ONE_DELAY = {"one delay": 1, "n × (delay + handshake)": lambda n: n * 1.02}
PUBLISHED = runs(
    "stage-0-py27", ((3, (3.3,)), (10, (11.0,))), source="published", published_in="001_talk.txt"
).drop(columns="measured_at")


def observed(stack: str) -> observations.Observation:
    """The recorded timeline of a stack."""
    return observations.recorded(stack, "timeline", ["grequests"], 5, 1.0)


PROFILE = pd.DataFrame(
    [
        ("grequests.py", 103, "map", 1, 1, 0.0, 10.2),
        ("urllib3/contrib/pyopenssl.py", 271, "recv", 20, 10, 0.002, 10.03),
        ("urllib3/util/wait.py", 99, "do_poll", 30, 30, 0.001, 9.9),
    ],
    columns=["file", "line", "function", "calls", "pcalls", "tottime_s", "cumtime_s"],
)
TRACE = pd.DataFrame(
    [
        (0.0, 1, 0, "recv", "pyopenssl.py", 271, "call"),
        (0.1, 1, 1, "do_poll", "wait.py", 99, "call"),
        (0.1, 1, 2, "poll", "wait.py", 99, "c_call"),
        (1.1, 1, 2, "poll", "wait.py", 99, "c_return"),
        (1.1, 1, 1, "do_poll", "wait.py", 99, "return"),
        (1.1, -1, 0, "switch", None, None, "switch"),
        (9.9, 2, 0, "switch", None, None, "switch"),
        (9.9, 2, 0, "<send>", "pool.py", 1, "call"),
    ],
    columns=["t_s", "greenlet", "depth", "function", "file", "line", "event"],
)
PROVENANCE = pd.DataFrame(
    [
        ("start", "ssl.SSLContext", "ssl.SSLContext", "ssl.py"),
        ("after requests", "ssl.SSLContext", "gevent._sslgte279.SSLContext", "gevent/x.py"),
        ("start", "select.poll", "select.poll", ""),
        ("after requests", "select.poll", "select.poll", ""),
    ],
    columns=["step", "name", "class", "module_file"],
)


#: A hundred connections and the sizes that only the reference machine measured.
FURTHER = {"trust": "bundle", "source": "reference"}
THOUSANDS = pd.concat(
    [
        runs("requests-2.34.2-today", ((10, (1.2, 1.3)), (300, (7.4, 7.6))), trust="bundle"),
        runs("requests-2.34.2-today", ((1000, (22.0,)), (3000, (63.2,))), **FURTHER),
        runs("cured-today", ((10, (1.1, 1.1)), (300, (1.6, 1.7))), trust="bundle"),
        runs("cured-today", ((1000, (2.44,)), (3000, (6.14,))), **FURTHER),
    ]
)
THOUSANDS["peak_rss_kib"] = THOUSANDS["n"] * 700 + 40_000
THOUSANDS["cpu_s"] = THOUSANDS["wall_s"] * 0.9


def visits(**also) -> pd.DataFrame:
    """Literal visits to the bookstore: two clients, three times each."""
    rows = [
        {"client": client, "repeat": i, "user_s": user * i, "server_cpu_s": server}
        for client, user, server in (("requests", 1.66, 0.8), ("bare-h2", 0.5, 1.0))
        for i in (1, 2, 3)
    ]
    return measured(rows, also)


#: Literal certificate loads of five releases of requests, fetched by threads.
LOADS = pd.concat(
    [
        runs(f"requests-2.{release}-today", ((30, (0.5,)),), client="threads", loads=count)
        for release, count in {"31.0": 30, "32.2": 0, "32.4": 0, "32.5": 30, "34.2": 30}.items()
    ]
)


#: Literal visits over a line, in two ways.
OVER_A_LINE = measured(
    [
        {"client": client, "connections": 6, "latency_ms": ms, "wall_s": 0.02 * ms + 0.1}
        for client in ("pipes", "bare-h2")
        for ms in (4.0, 35.0)
    ],
    {"at_once": 100, "window_bytes": 0, "n": 13, "body_bytes": 0, "lose": "", "congestion": "reno"},
)


def arrived(order: str, times, slow="b3: 1 s") -> pd.DataFrame:
    """Literal arrivals of books b1, b2, ... at some times."""
    visit = {"client": "bare-h2", "order": order, "repeat": 1, "slow": slow}
    return measured([{"book": f"b{i}", "at_s": at} for i, at in enumerate(times, 1)], visit)


ARRIVALS = pd.concat(
    [
        arrived("completed", (0.1, 0.2, 1.1, 0.3, 0.4)),
        arrived("asked", (0.1, 0.2, 1.1, 1.11, 1.12)),
    ]
)
FRAMES = pd.DataFrame(
    [
        (5.0, "client", "SETTINGS", 0, "", 24),
        (5.001, "client", "HEADERS", 1, "END_STREAM|END_HEADERS", 41),
        (5.002, "server", "SETTINGS", 0, "ACK", 0),
        (5.003, "server", "HEADERS", 1, "END_HEADERS", 87),
        (5.004, "server", "DATA", 1, "", 16_384),
        (5.005, "server", "DATA", 1, "", 9_000),
        (5.006, "server", "DATA", 1, "END_STREAM", 1),
    ],
    columns=["t_s", "sender", "type", "stream", "flags", "length"],
)
#: Five packets, of which the second is lost: sent again at once behind others, and after a wait.
PACKETS = pd.DataFrame(
    [
        (client, at_s, "back", 0, seq, 1_000, is_again, dropped)
        for client, again_s in (("bare-h2", 0.009), ("pipes", 0.22))
        for at_s, seq, is_again, dropped in (
            (0.0, 0, False, False),
            (0.001, 1_000, False, True),
            (0.002, 2_000, False, False),
            (again_s, 1_000, True, False),
            (again_s + 0.01, 3_000, False, False),
        )
    ],
    columns=["client", "t_s", "direction", "connection", "seq", "bytes", "is_again", "dropped"],
)

#: A request that keeps the thread for a tenth of a second, in files that no package has.
TURNS = observations.Observation(
    *("stage-1-py27", "turns", 1, 0.1, "2.7.18", "grequests", "2026-11-20T11:05:00Z", "live"),
    {
        "turns": [
            {"t_s": t_s, "event": event, "greenlet": greenlet, "to": to, "line": 7}
            | {"function": "poll", "file": f"its/{greenlet}.py"}
            for t_s, event, greenlet, to in (
                (0.001, "switch", 0, -1),
                (0.0012, "switch", -1, 1),
                (0.002, "call", 1, None),
                (0.102, "return", 1, None),
                (0.103, "switch", 1, -1),
                (0.104, "end", 0, None),
            )
        ]
    },
)


BINDINGS = bindings.Bindings(
    *("stage-1-today", "https", ("python",), "3.11.7"),
    {"python": {"ssl.SSLContext": "ssl.SSLContext", "select.poll": "select.poll"}},
    (bindings.Layer("requests", "", "send", bindings.HOLDS_THREAD),),
    *("", (0.01,), 0.4, "live", "2026-11-20T11:05:00Z"),
)


@cache
def every_chart() -> dict[str, str]:
    by_order, several = ["client", "order"], ["wall_s", "cpu_s", "peak_mb"]
    both = pd.concat([runs(), runs("stage-2-py27", SLOW), runs(scheme="http")])
    return {
        "n against wall": charts.n_against_wall(both, PUBLISHED, limits=ONE_DELAY).html,
        "stages": charts.stages(both, PUBLISHED).html,
        "matrix": charts.verdict_matrix(both).html,
        "timeline": charts.timeline([observed("stage-1-py27"), observed("stage-2-py27")]).html,
        "pair": charts.pair(
            {"the fast run": observed("stage-1-py27"), "the slow run": observed("stage-2-py27")},
            title="Twice",
        ).html,
        "concurrency": charts.effective_concurrency(both).html,
        "cures": charts.cures(both[both["scheme"] == "https"]).html,
        "against": charts.against(THOUSANDS, "n", "wall_s", title="Thousands").html,
        "panels": charts.against(THOUSANDS, "n", several, title="Panels").html,
        "dots": charts.dots(LOADS, "loads", title="Loads").html,
        "two": charts.dots(visits(), ["user_s", "server_cpu_s"], "client", title="CPU").html,
        "arrivals": charts.arrivals(ARRIVALS, by_order).html,
        "frames": charts.frames(FRAMES).html,
        "packets": charts.packets(PACKETS).html,
        "profile": charts.profile_rows(PROFILE).html,
        "trace": charts.trace(TRACE).html,
        "provenance": charts.provenance(PROVENANCE).html,
        "turns": charts.turns({"one": TURNS}).html,
        "bindings": charts.bindings({"one": BINDINGS}).html,
        "calculator": charts.calculator(OVER_A_LINE).html,
        "machines": charts.of_machines(machine_files.all_recorded())[1].html,
    }


@pytest.mark.parametrize("name", [*colours.COLOURS, "ink", "faint"])
def test_each_colour_can_be_read_as_text_on_each_page(name):
    for colour, grounds in zip((colours.COLOURS | colours.INK)[name], GROUNDS, strict=True):
        for ground in grounds:
            assert Color(colour).contrast(ground) >= 4.5


#: The names of the colours that meet in one chart.
TOGETHER = {
    "the stages": ["requests", *(f"stage-{i}" for i in range(5))],
    "other clients": [
        *("control", "aiohttp", "niquests", "urllib3", "pycurl"),
        *map(colours.colour_of, ["requests-2.34.2-today", "stage-1-today", "cured-today"]),
        *(colours.colour_of(stack, "threads") for stack in ("stage-1-today", "cured-today")),
        *(colours.colour_of("", each) for each in ("httpx", "httpx-each", "curl_cffi", "go")),
    ],
    "the bookstore": {colours.colour_of("", client) for client in readers.READERS},
    "the roles": [colours.of_role(role) for role in ("slow", "fast", "loop")],
    "the ways over a line": [colours.choice_for("way", way) for way in model.WAYS],
    "greenlets and threads": [
        colours.choice_for("way", f"{client}{end}")
        for client in ("grequests", "threads")
        for end in ("", ", cured")
    ],
}
#: How far apart they are for everybody at least.
ENOUGH = {
    **{"the stages": 0.07, "other clients": 0.065, "the bookstore": 0.065},
    **{"the roles": 0.1, "the ways over a line": 0.08, "greenlets and threads": 0.065},
}


@pytest.mark.parametrize("blindness", ["protan", "deutan", "tritan"])
@pytest.mark.parametrize("version", [0, 1])
@pytest.mark.parametrize("group", TOGETHER)
def test_colours_that_meet_stay_apart_for_every_kind_of_sight(blindness, version, group):
    """In Oklab, where distances are as people see them."""
    bare = {name: Color(colours.COLOURS[name][version]) for name in TOGETHER[group]}
    seen = {name: colour.filter(blindness, method="machado") for name, colour in bare.items()}
    for one, other in itertools.combinations(seen, 2):
        apart = seen[one].clip().distance(seen[other].clip(), space="oklab")
        assert apart > ENOUGH[group], (one, other)


def test_the_slow_stack_is_orange_in_every_chart():
    slow = runs("stage-2-py37", SLOW)
    for chart in (
        charts.n_against_wall(slow),
        charts.cures(slow),
        charts.effective_concurrency(slow),
        charts.stages(slow),
    ):
        drawn = re.findall(r"var\(--cb-(stage-\d|indigo|olive)", chart.html.split("</style>")[1])
        assert set(drawn) == {"stage-2"}


#: Colours of the marks and stems of a chart, in the order in which they are drawn.
MARKED = re.compile(r"(?:fill|stroke): ?var\(--cb-(stage-\d|control|indigo|steel|cured)\b")


def marked_in(chart) -> set[str]:
    return {*MARKED.findall(chart.html.split("</style>")[1])}


def test_a_colour_says_the_role_wherever_it_need_not_tell_stacks_apart():
    """Slow is orange and fast is blue, whatever the stack's own colour."""
    slow, fast = (colours.of_role(role) for role in ("slow", "fast"))
    was_slow = runs("google-auth-2.55.1-today", SLOW)
    cured = runs("stage-4-today")
    assert marked_in(charts.dots(was_slow, "wall_s", title="One")) == {slow}
    assert marked_in(charts.dots(cured, "wall_s", title="Other")) == {fast}
    both = pd.concat([was_slow, cured])
    assert marked_in(charts.cures(both)) == {slow, fast}
    assert marked_in(charts.against(both, "n", "wall_s", title="Lines")) == {slow, fast}
    # Two that are fast are told apart by their own colours, if they are lines; rows have names.
    fast_ones = pd.concat([runs("stage-4-today"), runs("stage-3-today")])
    lines = charts.against(fast_ones, "n", "wall_s", title="Two")
    assert marked_in(lines) == {"stage-3", "stage-4"}
    assert marked_in(charts.dots(fast_ones, "wall_s", title="Two")) == {fast}
    # What a verdict says nothing of has none of its colours, unless the chapter gives the roles.
    assert marked_in(charts.dots(fast_ones, "n", title="Plain")) == {colours.of_role("other")}
    roles = {"stage-4-today": "slow", "+ gevent_openssl, today": "loop"}
    given = charts.dots(fast_ones, "n", title="Given", roles=roles)
    assert marked_in(given) == {slow, colours.of_role("loop")}
    with pytest.raises(UsageError, match="no role 'quick'; choose one of: slow, fast"):
        charts.dots(fast_ones, "n", title="x", roles={"stage-4-today": "quick"})


def test_each_chart_follows_the_page_around_it_and_leaves_it_alone():
    """In both themes and any width, with a text for those who do not see it."""
    for name, html in every_chart().items():
        assert "html[data-theme=dark]" in html and "body[data-jp-theme-light=false]" in html
        assert html.count("<style") == 1 and not re.search(r"[}>,]\s*\*", html.split("<svg")[0])
        for svg, tag in re.findall(r"((<svg[^>]*>).*?</svg>)", html, flags=re.S):
            bare = re.sub(r"var\(--(?:[^()]|\([^()]*\))*\)", "", svg)
            assert not re.search(r"#[0-9a-f]{6}\b", bare), name
            assert "viewBox" in tag and not re.search(r'\s(width|height)="', tag)
            assert ('role="img" aria-label="' in tag) != ('aria-hidden="true"' in tag)


def test_ids_are_unique_on_a_page_and_lead_somewhere():
    page = "".join(every_chart().values())
    page += charts.n_against_wall(runs(), name="n-against-wall-again").html
    ids = re.findall(r'\bid="([^"]+)"', page)
    assert len(ids) == len(set(ids)) > 20
    assert set(re.findall(r'(?:url\(#|href="#)([^)"]+)', page)) <= set(ids)


def data_of(html: str) -> dict[str, pd.DataFrame]:
    """The frames behind the links of charts, by the names of their files."""
    links = re.findall(r'download="([^"]+)" href="data:text/csv;[^,"]*,([^"]+)"', html)
    read = {name: io.BytesIO(base64.b64decode(file)) for name, file in links}
    return {name: pd.read_csv(file) for name, file in read.items()}


def test_each_drawing_has_its_data_beside_it():
    drawings = {name for name, html in every_chart().items() if 'class="cb cb-figure"' in html}
    found = {name: data_of(every_chart()[name]) for name in drawings}
    assert len(drawings) == 14 and all(len(files) == 1 for files in found.values())
    told = {name: next(iter(files.values())) for name, files in found.items()}
    assert told["stages"]["wall_s"].tolist()[:3] == runs()["wall_s"].tolist()[:3]
    assert set(told["stages"]["source"]) == {"live", "published"}
    assert told["two"]["server_cpu_s"].tolist() == visits()["server_cpu_s"].tolist()
    frames = told["frames"].fillna({"flags": ""})
    assert frames.equals(FRAMES[frames.columns])
    assert (told["panels"]["peak_mb"] > 0).all()
    assert set(told["timeline"]["shown"]) == {
        "grequests alone, Python 2.7", "+ pyOpenSSL, Python 2.7"
    }  # fmt: skip
    # What nobody said of a row is not said of it here.
    assert not {"client", "scheme"} & {*told["dots"]} - {*LOADS}


def test_a_reader_can_take_the_data_along(browser, tmp_path):
    """Out of a page that was opened from a folder, without a network."""
    page = tmp_path / "page.html"
    page.write_text(charts.frames(FRAMES, name="frames-of-one").html)
    with browser.new_page() as tab:
        tab.goto(page.as_uri())
        with tab.expect_download() as taking:
            tab.get_by_role("link", name="The data of this chart (").click()
        assert taking.value.suggested_filename == "frames-of-one.csv"
        assert list(pd.read_csv(taking.value.path())["type"]) == list(FRAMES["type"])


def test_the_same_runs_give_the_same_bytes():
    assert every_chart() == every_chart.__wrapped__()


def test_the_alternative_text_states_the_finding():
    both = pd.concat([runs(), runs("stage-2-py27", SLOW)])
    alt = charts.n_against_wall(both, limits=ONE_DELAY).alt
    assert "At n = 10" in alt and "10.3 s (10.2–10.4)" in alt and "7.4 times" in alt
    assert alt in charts.n_against_wall(both, limits=ONE_DELAY)._repr_mimebundle_()["text/plain"]
    faster = charts.n_against_wall(both.assign(wall_s=both["wall_s"] / 2)).alt
    assert "5.15 s" in faster


def test_the_caption_says_where_and_when():
    live = charts.n_against_wall(runs()).caption
    assert "Measured on this machine, 20 November 2026, 11:05 UTC." in live
    recorded = charts.n_against_wall(runs(source="reference")).caption
    assert "Recorded on the reference machine, 20 November 2026, not measured now." in recorded
    assert "Measured on this machine" not in recorded
    mixed = pd.concat([runs(), runs("stage-2-py27", SLOW, source="reference")])
    mixed = charts.n_against_wall(mixed, PUBLISHED).caption
    assert "+ pyOpenSSL, Python 2.7: recorded on the reference machine" in mixed
    assert "Published in the talk" in mixed and "hollow: published" in mixed
    assert "+ pyOpenSSL, Python 2.7, reference" in mixed


def test_an_axis_keeps_both_of_its_ends():
    """0 and 1 of 117 lie too close for both: the caption tells of the smallest, and so of 0."""
    frame = pd.DataFrame({"n": [0, 1, 50, 117], "wall_s": [1.0, 2.0, 50.0, 117.0]})
    chart = charts.against(frame.assign(stack="stage-1-today"), "n", "wall_s", title="Ends")
    ticks = re.findall(r">(0|1|50|117)</text>", chart.html)
    assert "At n = 117" in chart.html and {"50", "117"} < set(ticks) and "1" not in ticks


def test_counts_of_a_profile_stand_among_the_numbers():
    calls = pd.DataFrame({"where": ["read", "poll"], "calls": ["10/1", "–"], "of": ["x", "1"]})
    html = tables.show(calls, "Calls").html
    assert re.findall(r"<td([^>]*)>10/1<", html) == [' class="cb-number"']
    assert re.findall(r"<td([^>]*)>x<", html) == [""]


def test_a_strangers_column_is_called_as_one_writes_it():
    frame = pd.DataFrame({"parser": ["json", "orjson"], "cpu_ms": [2.0, 1.0], "cpu_share": 0.5})
    assert (
        "CPU: json 2.00 ms; orjson 1.00 ms."
        in charts.dots(frame, "cpu_ms", "parser", title="x").caption
    )
    assert "CPU share: json" in charts.dots(frame, "cpu_share", "parser", title="x").caption


def test_published_and_reference_rows_are_drawn_differently():
    dashed = "stroke-dasharray"
    assert dashed not in charts.n_against_wall(runs()).html
    assert dashed in charts.n_against_wall(runs(), PUBLISHED).html
    live = charts.n_against_wall(runs(), name="x").html
    recorded = charts.n_against_wall(runs(source="reference"), name="x").html
    ground = "var(--pst-color-background"
    assert ground in recorded and ground not in live.split("</style>")[1]


def test_another_delay_than_the_published_one_is_shown_in_delays():
    quick = runs("stage-2-py27", ((3, (0.33,)), (10, (1.1,))), delay_s=0.1)
    limits = {"one delay": 0.1, "n handshakes": lambda n: n * 0.11}
    chart = charts.n_against_wall(quick, PUBLISHED, limits=limits)
    assert ">wall time, delays<" in chart.html
    assert "+ pyOpenSSL, Python 2.7 11.0 delays; whatever is there, Python 2.7, published 11.0" in (
        chart.alt
    )
    assert "the number of requests, in delays (0.1 s here, 1 s where published)." in chart.caption


def test_lines_that_say_that_they_are_published_or_plain_http_share_names_and_colours():
    ours = [runs(client="requests"), runs(scheme="http"), runs("stage-2-py27", scheme="http")]
    theirs = PUBLISHED.assign(stack="stage-0", client="requests")
    chart = charts.n_against_wall(pd.concat(ours), theirs)
    assert "requests 1.40 s (1.30–1.50); " in chart.alt and "requests, published 11.0" in chart.alt
    drawn = re.findall(r"var\(--cb-(\S+?),[^>]*>(?:requests|grequests|\+)", chart.html)
    assert set(drawn) == {"stage-1", "control"}  # fast, and so is what was published of it


def test_axes_are_logarithmic_only_where_n_spans_a_decade():
    assert "ogarithmic" not in charts.n_against_wall(runs()).caption
    wide = runs(walls=((3, (1.1,)), (100, (2.0,))))
    assert "Logarithmic: requests (n) and wall time." in charts.n_against_wall(wide).caption


def test_boxes_are_moved_apart_as_little_as_needed():
    assert curves.separate([10, 50], [10, 10], 0, 100) == [10, 50]
    assert curves.separate([50, 50], [10, 10], 0, 100) == [45, 55]
    assert curves.separate([2, 3, 99], [10, 10, 10], 0, 100) == [5, 15, 95]
    assert curves.separate([3, 2], [10, 10], 0, 100) == [15, 5]


def _boxes(svg: str) -> list[tuple[str, float, float, float]]:
    """Each text of a drawing: what it says, its left and right end, its base line."""
    found = []
    with figure.drawing(figure.WIDTH, 100) as drawn:
        for tag, said in re.findall(r"<text([^>]*)>([^<]+)", svg):
            x, y = re.search(r"(?:translate\(|rotate\(\S+ )([\d.-]+) ([\d.-]+)\)", tag).groups()
            size = float(re.search(r"font-size: ([\d.]+)px", tag)[1])
            wide = figure.width_of(drawn, said, size)
            anchor = re.search(r"text-anchor: (\w+)", tag)
            left = float(x) - {"middle": 0.5, "end": 1.0}.get(anchor[1] if anchor else "", 0) * wide
            found.append((said, left, left + wide, float(y)))
    return found


def test_each_kind_of_chart_is_looked_at_here():
    asked = set(re.findall(r"charts\.(\w+)\(", inspect.getsource(every_chart)))
    # They have a page of their own to stand on (test_explorer.py, test_capacity.py,
    # test_snakeviz.py).
    apart = {"explorer", "capacity", "ProfilePage"}
    assert set(charts.__all__) - asked == apart, "a chart has a call in every_chart()"
    made = {
        each.name
        for path in Path(charts.__file__).parent.glob("*.py")
        for each in ast.parse(path.read_text()).body
        if isinstance(each, ast.FunctionDef) and ast.unparse(each.returns or each) == "Chart"
    }
    unnamed = {name for name in made if name[0] != "_"} - {"chart"} - set(charts.__all__)
    assert not unnamed, f"charts/__init__.py does not name {unnamed}"


def test_no_text_leaves_its_drawing_or_lies_on_another():
    long = pd.concat([runs("google-auth-2.55.1-today"), runs("requests-2.23-py37", SLOW)])
    pieces = dict(every_chart())
    pieces["long"] = charts.n_against_wall(long, limits=ONE_DELAY).html
    pieces["long panels"] = charts.against(long, "n", ["wall_s", "n"], title="Long").html
    for name, html in pieces.items():
        for svg in re.findall(r'<svg[^>]*role="img".*?</svg>', html, flags=re.S):
            width, height = map(float, re.search(r'viewBox="0 0 ([\d.]+) ([\d.]+)', svg).groups())
            boxes = _boxes(svg)
            for said, left, right, y in boxes:
                assert -1 <= left and right <= width + 1 and 0 <= y <= height, (name, said)
            for one, other in itertools.combinations(boxes, 2):
                beside = one[2] <= other[1] + 1 or other[2] <= one[1] + 1
                assert beside or abs(one[3] - other[3]) > 7, (name, one[0], other[0])


def test_stages_names_each_verdict_and_the_control():
    frame = pd.concat([runs(), runs("stage-2-py37", SLOW), runs("stage-2-py37", scheme="http")])
    chart = charts.stages(frame, PUBLISHED)
    for text in ("grequests alone", "+ pyOpenSSL", "plain HTTP", "published", "Python 3.7"):
        assert f">{text}<" in chart.html
    assert "Serial: + pyOpenSSL (Python 3.7): 10 delays at n = 10." in chart.alt
    assert "Concurrent: grequests alone (Python 2.7): 1.3 to 1.5 delays at n = 10." in chart.alt
    assert "Over plain HTTP the slowest takes 1.50 delays at n = 10." in chart.alt
    assert "Published for a laptop, Python 2.7: 11.0 delays at n = 10." in chart.alt


def test_stages_are_drawn_in_delays_whatever_the_delay_was():
    short = runs("stage-2-py27", ((1, (0.11,)), (30, (3.3,))), delay_s=0.1, verdict="serial")
    chart = charts.stages(pd.concat([short, runs("stage-2-py37", SLOW)]))
    assert "delays at" not in chart.alt  # they share no n
    assert "one delay (0.1 s and 1 s)" in chart.caption
    both = charts.stages(pd.concat([short, runs("stage-2-py37", ((30, (31.0,)),))]))
    assert "31 to 33 delays at n = 30" in both.alt
    again = charts.stages(pd.concat([short, short.assign(source="reference")]))
    assert "half-filled: recorded on another machine" in again.caption
    with pytest.raises(UsageError, match="without a delay"):
        charts.stages(runs(delay_s=0.0))


def test_the_matrix_shows_ours_beside_the_published():
    said = pd.DataFrame({"stack": ["stage-1-py27", "stage-2-py27", "stage-0-py37"]})
    said = said.assign(published="fast", source="published", published_in="001_talk.txt")
    frame = pd.concat([runs(), runs("stage-2-py27", SLOW, source="reference")])
    chart = charts.verdict_matrix(frame, said)
    text = re.sub(r"<[^>]+>", " ", chart.html.split("</style>")[1])
    assert "published: fast , different here".replace(" ,", ",") in re.sub(r" +", " ", text)
    assert "7.7 at a time" in text and "not measured" in text and "recorded" in text
    assert "1 of 2 verdicts are as published" in chart.alt
    assert chart._repr_mimebundle_()[figure.FIGURE]["name"] == "verdicts-by-stage-and-python"


def test_the_matrix_says_which_stages_the_script_itself_makes_ill():
    """Else gevent_openssl would seem to break the healthy stage above it."""
    names = [f"stage-{i}-{python}" for python in ("py37", "today") for i in (1, 2, 3, 4)]
    ill = "stage-2-injected-today"
    frame = pd.concat([runs(name) for name in [*names, ill]])
    rows = charts.verdict_matrix(frame).html.split("<tr>")[2:]
    said = {
        re.sub("<.*?>", "", row.split("<td")[0]).replace("\xa0", " "): row.split("<td")[1:]
        for row in rows
    }
    marked = {(stage, at) for stage in said for at, cell in enumerate(said[stage])
              if "injected by hand" in cell}  # fmt: skip
    assert marked == {("+ pyOpenSSL injected", 1), ("+ gevent_openssl", 1), ("+ recv_into", 1)}


def test_tables_have_captions_headers_and_no_empty_cell():
    pieces = dict(every_chart())
    pieces["frame"] = tables.show(runs(), "Some runs").html
    for name in ("matrix", "profile", "provenance", "frame"):
        html = pieces[name]
        assert re.search(r"<caption>[^<]+</caption>", html)
        assert re.search(r'role="group" tabindex="0" aria-label="[^"]+"', html)
        assert all('scope="' in cell for cell in re.findall(r"<th[^>a-z]?[^>]*>", html)[1:])
        assert not re.search(r"<t[hd][^>]*>\s*</t[hd]>", html)


def test_a_table_says_its_source_in_words_and_aligns_its_numbers():
    frame = runs(source="reference")[["stack", "n", "wall_s", "source"]]
    shown = tables.show(frame, "Some <runs>", formats={"wall_s": ".1f"})
    assert '<td class="cb-number">1.3</td>' in shown.html
    # The unit stays beside the last word.
    assert '<th scope="col" class="cb-number">wall time,\u00a0s</th>' in shown.html
    assert "Some &lt;runs&gt;" in shown.html and "Some <runs>" in shown.text
    assert "Recorded on the reference machine" in shown.html
    assert tables.show(pd.DataFrame({"a": [1.0, None]}), "x").html.count("–") == 1
    named = tables.show(pd.DataFrame({"file": ["a/b.py:9(do_poll)"], "s": [1.5]}), "x")
    assert "a/<wbr>b.<wbr>py:9(<wbr>do_<wbr>poll)</th>" in named.html and ">1.50<" in named.html


def test_a_table_too_wide_for_a_phone_names_each_cell_for_its_cards():
    names = ["job", "question", "verdict", "measured", "certificates", "connections", "status"]
    wide = tables.show(pd.DataFrame([dict.fromkeys(names, "not applicable")]), "Wide").html
    assert "cb-wide" in wide.partition("<style>")[0]
    assert '<td data-title="certificates">' in wide and '<th scope="row" data-title="job">' in wide
    four = tables.show(pd.DataFrame([dict.fromkeys(names[:4], "no")]), "Four").html
    assert "cb-wide" in four.partition("<style>")[0]  # however narrow they are
    close = dict.fromkeys(names[:3], "inapplicability")
    close = tables.show(pd.DataFrame([close]), "Close").html
    assert "cb-close" in close.partition("<style>")[0] and "data-title=" in close
    few = tables.show(pd.DataFrame([dict.fromkeys(names[:3], "not applicable")]), "Few").html
    assert 'class="cb cb-table "' in few and "data-title=" not in few


def test_what_is_the_same_in_all_rows_is_said_once_and_what_came_out_stays_in_its_column():
    frame = pd.concat([runs(), runs("stage-2-py27", SLOW)])
    frame = frame[["stack", "n", "verdict", "source"]].assign(verdict="serial", client="threads")
    both = pd.concat([frame, frame.assign(source="reference")])
    alike, mixed = tables.show(frame, "Runs").html, tables.show(both, "Runs").html
    assert "In all rows: client threads." in alike and "Measured on this machine" in alike
    heads = [re.findall(r'scope="col"[^>]*>(\w+)<', each) for each in (alike, mixed)]
    assert heads == [["stack", "n", "verdict"], ["stack", "n", "verdict", "source"]]
    assert ">measured here</td>" in mixed and ">recorded</td>" in mixed


def test_a_table_says_where_each_of_its_rows_comes_from():
    frame = pd.concat([runs(), runs("stage-2-py27", SLOW, source="reference")])
    shown = tables.show(frame[["stack", "n", "source", "measured_at"]], "Runs").html
    assert "Measured on this machine, 20 November 2026, 11:05 UTC." in shown
    assert "ecorded on the reference machine" in shown


def test_a_table_of_another_machines_rows_names_it():
    rows = pd.DataFrame({"n": [1, 2], "wall_s": [1.0, 2.0], "source": "reference"})
    shown = tables.show(rows.assign(instead=f"{words.ON}a Mac, 8 cores"), "Rows").text
    assert "Recorded on a Mac, 8 cores, not measured now." in shown
    assert "reference machine" not in shown and "instead" not in shown
    some = tables.show(rows.assign(instead=["", f"{words.ON}a Mac, 8 cores"]), "Rows").text
    assert "Recorded on the reference machine, not measured now." in some
    assert "Some of it was recorded on another machine: a Mac, 8 cores." in some
    tasks = rows.assign(n=1, stack="openssl-3.0-today", how=["alone", "apart"])
    part = tables.show(tasks.assign(source=["live", "reference"]), "Rows").text
    assert "OpenSSL 3.0, apart: recorded on the reference machine" in part


def test_a_table_refuses_what_it_cannot_show():
    with pytest.raises(UsageError, match="no rows"):
        tables.show(pd.DataFrame(), "Nothing")
    assert tables.show(pd.DataFrame(), "x", none="why").text == "Not here: why."
    with pytest.raises(UsageError, match="caption"):
        tables.show(runs(), " ")
    with pytest.raises(UsageError, match="wall_ms"):
        tables.show(runs(), "x", formats={"wall_ms": ".1f"})


def test_a_stall_is_a_pause_between_heartbeats():
    assert stalls([0.01, 0.02, 0.5, 0.51], 0.52, 0.05) == [(0.02, 0.5)]
    assert stalls([0.3], 0.31, 0.05) == [(0.0, 0.3)]


def test_cures_stand_in_the_order_of_their_stacks_and_the_delay_is_a_line():
    slow = runs("stage-2-injected-today", SLOW)
    still = runs("stage-3-today", ((3, (3.1, 3.1)), (10, (10.1, 10.3))))
    chart = charts.cures(pd.concat([slow, still, runs("extract-today")]))
    names = ("uncured", "gevent_openssl alone", "extracted")
    rows = [chart.html.index(f">{name}<") for name in names]
    assert rows == sorted(rows)
    assert ">one delay, 1 s<" in chart.html and ">10.3 s, serial<" in chart.html
    ends = "1.40 s (extracted) to 10.3 s (uncured), 7.4 times as long."
    verdicts = "Serial: uncured; gevent_openssl alone. Concurrent: extracted."
    assert f"At n = 10, wall time: {ends} {verdicts}" in chart.alt


def test_a_cure_is_called_and_coloured_by_the_same_rule():
    """One busy moment among the repeats, and a machine that recorded another verdict."""
    hidden = runs("extract-today", ((10, (1.4, 9.0)),))
    elsewhere = runs("extract-today", ((10, (10.2,)),), source="reference")
    assert set(hidden["verdict"]) == {"concurrent", "serial"}
    chart = charts.cures(hidden)
    assert marked_in(chart) == {colours.of_role("fast")} and "s, concurrent<" in chart.html
    chart = charts.cures(pd.concat([hidden, elsewhere]))
    assert marked_in(chart) == {colours.of_role(role) for role in ("slow", "fast")}
    assert "Concurrent: extracted. Serial: extracted, reference." in chart.alt


def test_effective_concurrency_says_whether_verdicts_lie_apart():
    frame = pd.concat([runs(), runs("stage-2-py27", SLOW)])
    chart = charts.effective_concurrency(frame)
    assert "No serial run is above 0.98 and no concurrent one below 2.5." in chart.alt
    assert ">1: one at a time<" in chart.html and ">from 1.5: concurrent<" in chart.html
    both = charts.effective_concurrency(frame.assign(load="busy"), by=["verdict", "load"])
    assert ">serial, busy<" in both.html


def test_where_the_reference_machine_goes_on_there_is_one_line_and_a_mark():
    chart = charts.against(THOUSANDS, "n", "wall_s", title="Thousands", limits={"limit": 1})
    assert chart.html.count(">requests 2.34.2<") == chart.html.count(">cured<") == 1
    assert ">here<" in chart.html and ">reference<" in chart.html and ">limit<" in chart.html
    assert "requests 2.34.2, reference 63.2 s; cured, reference 6.14 s" in chart.alt
    assert "requests 2.34.2, reference: 10 times as long as cured, reference." in chart.alt
    assert "The runs with n = 1,000 and 3,000: recorded on the reference machine" in chart.caption
    here = charts.against(THOUSANDS[THOUSANDS["source"] == "live"], "n", "wall_s", title="Here")
    assert ">reference<" not in here.html and "reference" not in here.caption


def test_a_line_that_is_recorded_as_a_whole_says_so_beside_those_that_go_on():
    go = runs("go", ((10, (1.0,)), (3000, (2.5,))), client="go", source="reference")
    chart = charts.against(pd.concat([THOUSANDS, go]), "n", "wall_s", title="Thousands")
    assert ">Go, reference<" in chart.html and ">cured<" in chart.html
    again = THOUSANDS.assign(n=THOUSANDS["n"].clip(upper=300))
    again = charts.against(again, "n", "wall_s", title="Both at 300")
    assert ">cured, reference<" in again.html.replace(",</text>", ", reference<").replace("\n", "")
    assert ">here<" not in again.html


def test_panels_have_one_drawing_each_and_the_same_colours():
    panels = ["wall_s", "cpu_s", "peak_mb"]
    chart = charts.against(THOUSANDS, "n", panels, title="Panels", limits={"limit": 1})
    drawn = re.findall(r'<svg[^>]*role="img".*?</svg>', chart.html, flags=re.S)
    assert len(drawn) == 3 and [">limit<" in svg for svg in drawn] == [True, False, False]
    for svg, title in zip(drawn, ("wall time, s", "CPU, s", "peak memory, MB"), strict=True):
        assert f">{title}<" in svg
        assert set(re.findall(r"var\(--cb-(stage-\d|cured|indigo)", svg)) == {"stage-1", "cured"}
    assert "At n = 3,000, peak memory: requests 2.34.2, reference 2,191 MB" in chart.alt


def test_lines_of_one_stack_are_told_apart_by_what_they_are_told_apart_by():
    threads = runs("stage-1-today", client="threads", trust="bundle")
    frame = pd.concat([threads, threads.assign(trust="off", wall_s=threads["wall_s"] * 3)])
    chart = charts.against(frame, "n", "wall_s", by="trust", title="Trust")
    assert ">verify=True<" in chart.html and ">verify=False<" in chart.html
    colour = re.findall(r"var\(--cb-(\S+?),[^>]*>verify=", chart.html)
    assert len(set(colour)) == 2
    silent = charts.against(frame, "n", "wall_s", title="Trust, not asked for")
    assert "verify=True" in silent.alt and "verify=False" in silent.alt


@pytest.mark.parametrize(
    ("clients", "labels"),
    [
        (["threads"], ["requests 2.32.4", "cured"]),
        (["grequests"], ["requests 2.32.4", "cured"]),
        (
            ["grequests", "threads"],
            [
                *("requests 2.32.4, grequests", "requests 2.32.4, threads"),
                *("cured, grequests", "cured, threads"),
            ],
        ),
    ],
)
def test_stacks_are_told_apart_whoever_fetches(clients, labels):
    frame = pd.concat(
        [runs(s, client=c) for s in ("requests-2.32.4-today", "cured-today") for c in clients]
    )
    lines = gather(frame)
    assert [line.label for line in lines] == labels
    assert len({line.colour for line in assign_colours(lines, {})}) == len(labels)


def test_a_colour_that_nobody_chose_makes_room():
    """Two new stacks beside one of the book, whose colour by their names is the same."""
    names = ["new-06-today", "patch-all-first-today", "new-15-today", "stage-1-today"]
    assert {colours.name_or_spare(colours.colour_of(name)) for name in names[:3]} == {"olive"}
    seen = [line.colour for line in gather(pd.concat([runs(name) for name in names]))]
    assert len(set(seen)) == 4 and (seen[1], seen[3]) == ("olive", "stage-1")


def test_a_frame_can_name_and_colour_its_lines():
    ours = runs("cured-today", way="ours", colour="plum")
    frame = pd.concat([ours, runs("stage-1-today", SLOW, client="threads", way="theirs")])
    chart = charts.against(frame, "n", "wall_s", "way", title="Named")
    assert re.search(r"--cb-plum[^>]*>ours<", chart.html) and ">theirs<" in chart.html
    assert "ours 1.40 s" in chart.alt
    with pytest.raises(UsageError, match="no colour 'pink'"):
        charts.dots(frame.assign(colour="pink"), "wall_s", title="Pink")


def test_what_a_model_says_passes_for_no_run():
    said = pd.DataFrame({"way": "one", "pages": [1, 100], "hours": [2, 200], "source": "model"})
    theirs = pd.DataFrame({"way": ["they"], "pages": [100], "hours": [300], "source": "published"})
    chart = charts.against(pd.concat([said, theirs]), "pages", "hours", "way", title="Drawn on")
    assert "Each run" not in chart.caption and "Measured" not in chart.caption
    assert "Hollow: published" in chart.caption and "one, model" in chart.caption
    ours = charts.against(said.assign(source="live"), "pages", "hours", "way", title="Ours")
    assert "Measured" in ours.caption and "Each run a dot" in ours.caption


def test_scales_are_logarithmic_where_lines_end_far_apart_but_never_over_nothing():
    near = runs(walls=((3, (1.0,)), (10, (1.1,))))
    far = pd.concat([near, runs("stage-2-py27", ((3, (11.0,)), (10, (12.0,))))])
    for frame, said in ((near, False), (far, True), (far.assign(wall_s=far["wall_s"] - 1), False)):
        chart = charts.against(frame, "n", "wall_s", title="Scale")
        assert ("Logarithmic" in chart.caption) == said
    mixed = far.assign(loads=0)
    mixed = charts.against(mixed, "n", ["wall_s", "loads"], title="Mixed")
    assert "Logarithmic: wall time." in mixed.caption
    assert "logarithmic" not in charts.dots(LOADS, "loads", title="With a 0").caption


def test_a_zero_on_a_logarithmic_scale_is_refused():
    with pytest.raises(UsageError, match=r"loads has a 0.*logarithmic"):
        charts.dots(LOADS, "loads", title="Loads", log=True)
    frame = LOADS.assign(n=1)
    with pytest.raises(UsageError, match=r"loads has a 0.*logarithmic"):
        charts.against(frame, "n", "loads", title="Loads", log={"loads": True})


def test_dots_write_each_median_and_say_which_are_the_same():
    chart = charts.dots(LOADS, {"loads": "certificate loads"}, title="Loads")
    text = re.sub(r"<[^>]+>", " ", re.search(r"<svg.*?</svg>", chart.html, flags=re.S)[0])
    assert text.split().count("30") == 3 + 1 and text.split().count("0") == 2 + 1  # with ticks
    assert "certificate loads" in text
    assert "30 for requests 2.31.0; requests 2.32.5; requests 2.34.2." in chart.caption
    assert "0 for requests 2.32.2; requests 2.32.4." in chart.caption
    assert "requests 2.32.4 0; requests 2.32.5 30" in chart.alt


def test_dots_come_in_the_order_asked_for():
    def rows(**asked) -> list[str]:
        html = charts.dots(visits(), "user_s", "client", title="Order", **asked).html
        return re.findall(r">(requests|bare h2)</text>", html)

    assert rows() == ["requests", "bare h2"]
    assert rows(order="value") == rows(order=["bare-h2"]) == ["bare h2", "requests"]


def test_two_values_of_a_row_have_a_mark_each():
    values = {"user_s": "client", "server_cpu_s": "server"}
    chart = charts.dots(visits(), values, "client", title="CPU")
    assert "<span>client</span>" in chart.html and "<span>server</span>" in chart.html
    for number in ("3.32 s", "0.800 s", "1.00 s"):
        assert f">{number}<" in chart.html
    assert "Client: requests 3.32 s (1.66–4.98); bare h2 1.00 s (0.500–1.50)." in chart.alt
    assert "Server: requests 0.800 s; bare h2 1.00 s." in chart.alt
    with pytest.raises(UsageError, match="1 to 3 values, not 4"):
        charts.dots(visits(), ["user_s"] * 4, "client", title="Four")


def test_dots_of_other_machines_have_rows_of_their_own():
    frame = pd.concat([visits(), visits(source="reference"), visits(source="published")])
    chart = charts.dots(frame, "user_s", "client", title="Three")
    for label in ("requests", "requests, reference", "requests, published"):
        assert f">{label}<" in chart.html
    assert "half-filled: recorded on another machine; hollow: published" in chart.caption
    key = re.findall(r"<li>.*?<span>(.*?)</span></li>", chart.html)
    assert [text.partition(":")[0] for text in key] == ["measured", "reference",
                                                        "published"]  # fmt: skip
    assert 'class="cb-key"' not in charts.dots(visits(), "user_s", "client", title="One").html


def test_a_median_stands_beside_its_dots_or_in_a_column_where_these_are_apart():
    def texts(*walls_s: float) -> list[str]:
        frame = pd.DataFrame({"stack": "stage-1-today", "wall_s": walls_s})
        return re.findall(r">([^<>]+)</text>", charts.dots(frame, "wall_s", title="x").html)

    assert "median" not in texts(1.0) + texts(1.0, 1.001, 1.002)
    assert {"median", "1.00 s"} <= {*texts(0.5, 1.0, 2.0)}


def test_arrivals_count_who_waits_for_the_slow_book():
    chart = charts.arrivals(ARRIVALS, ["client", "order"])
    assert ">4 of 4<" in chart.html and ">2 of 4<" in chart.html
    assert "Bare h2, as completed: 4 of 4 other books before the slow one" in chart.alt
    assert "half of them by 0.200 s, the last at 0.400 s" in chart.alt
    assert "in the order asked: 2 of 4 other books before the slow one" in chart.alt
    assert "which came at 1.10 s; half of them by 0.200 s, the last at 1.12 s" in chart.alt
    assert "<span>the slow book</span>" in chart.html
    none = charts.arrivals(arrived("completed", (0.1, 0.2, 0.3), slow=""))
    assert "all 3 books in 0.300 s" in none.alt and "slow" not in none.alt
    flagged = arrived("completed", (0.1, 0.9, 0.3), slow=False).assign(slow=[False, True, False])
    assert "2 of 2 other books before the slow one" in charts.arrivals(flagged).alt


def test_arrivals_of_two_visits_are_not_drawn_as_one():
    with pytest.raises(UsageError, match="book b1 twice"):
        charts.arrivals(ARRIVALS)
    again = pd.concat([ARRIVALS, ARRIVALS.assign(repeat=2, at_s=9.0)])
    chart = charts.arrivals(again, ["client", "order"])
    assert "9.00 s" not in chart.alt and "the first visit of each" in chart.caption


def test_frames_are_listed_in_order_and_counted():
    chart = charts.frames(FRAMES)
    assert "7 frames: the client sent 1 SETTINGS and 1 HEADERS; the server sent" in chart.alt
    assert "Stream 1 took 5.0 ms and brought 25,385 bytes of data." in chart.alt
    told = [
        "0.0 ms, client: SETTINGS, connection, 24 bytes.",
        "1.0 ms, client: HEADERS, stream 1, 41 bytes, END_STREAM, END_HEADERS.",
        "2.0 ms, server: SETTINGS, connection, empty, ACK.",
        "4.0 ms, server: DATA × 2, stream 1, 25,384 bytes.",
        "6.0 ms, server: DATA, stream 1, 1 byte, END_STREAM.",
    ]
    assert [chart.alt.find(text) for text in told] == sorted(chart.alt.find(text) for text in told)
    assert -1 not in [chart.alt.find(text) for text in told]
    assert chart.html.count(">DATA × 2<") == 1
    again = pd.concat([FRAMES.assign(t_s=FRAMES["t_s"] + i) for i in range(8)])
    assert ">and 10 more frames<" in charts.frames(again).html
    with pytest.raises(UsageError, match="client or server, not 'proxy'"):
        charts.frames(FRAMES.assign(sender="proxy"))


def test_a_profile_shows_its_longest_lines_and_writes_calls_as_pstats_does():
    more = [("x.py", i, "f", 1, 1, 0.0, 0.1) for i in range(9)]
    shown = charts.profile_rows(pd.DataFrame([*more, *PROFILE.to_numpy()], columns=[*PROFILE]))
    assert re.search(r"^grequests.py:103\(map\) +1 +0.000 +10.200$", shown.text, re.M)
    assert "20/10" in shown.text and len(shown.text.splitlines()) == 2 + 8


def test_a_trace_marks_the_call_that_blocks():
    shown = charts.trace(TRACE)
    (marked,) = re.findall(r"<mark [^>]*>(.*?)</mark>", shown.html)
    assert "▶     poll  wait.py:99  ◀ 1.00 s pass here" in re.sub("<.*?>", "", marked)
    assert "▶   do_poll  wait.py:99  ◀ 1.00 s pass" in charts.trace(TRACE, "do_poll").text
    assert "&lt;send&gt;" in shown.html and "greenlet 2" in shown.text
    with pytest.raises(UsageError):
        charts.trace(TRACE, "no_such_function")


def test_a_trace_and_the_lines_that_it_went_through_are_linked_both_ways():
    recv = Listing("<i>the lines</i>", "the lines", "pyopenssl.py", 271, 290)
    shown = charts.trace(TRACE, quoted=[recv])
    rows, lines = re.findall(r'<a id="(\S+)" href="#(\S+)">recv</a>', shown.html)[0]
    assert f'<div id="{lines}"><i>the lines</i>' in shown.html and f'href="#{rows}"' in shown.html
    assert shown.text.startswith("the lines\n")
    # Where the Python is missing nothing could be quoted, and nothing is linked.
    assert "<a " not in charts.trace(TRACE, quoted=[Listing("none", "none")]).html
    with pytest.raises(UsageError, match="no row"):
        charts.trace(TRACE, quoted=[Listing("", "", "pyopenssl.py", 300, 310)])


def test_a_column_of_code_is_shown_as_code_that_breaks_at_its_spaces_alone():
    frame = pd.DataFrame({"name": ["a_b"], "line": ["with self._lock:"], "none": [""]})
    html = tables.show(frame, "Lines", as_code=["line", "none"]).html
    assert "<td><code>with self._lock:</code></td><td></td>" in html and "a_<wbr>b" in html


def test_provenance_marks_what_changed():
    shown = charts.provenance(PROVENANCE)
    assert "ssl.SSLContext  ssl.SSLContext  ▲ gevent._sslgte279.SSLContext" in shown.text
    assert re.search("select.poll +select.poll +same", shown.text)
    assert shown.html.count("<strong>▲") == 1
    with pytest.raises(UsageError, match="no step 'after lunch'"):
        charts.provenance(PROVENANCE, steps=["after lunch"])


def test_a_chart_without_runs_says_what_to_do():
    with pytest.raises(UsageError, match="no runs"):
        charts.n_against_wall(runs().iloc[:0])
    with pytest.raises(UsageError, match="wall_s"):
        charts.n_against_wall(runs().drop(columns="wall_s"))


@pytest.mark.parametrize(
    ("run", "said"),
    [
        (["stage-2-py27"], "+ pyOpenSSL, Python 2.7"),
        (["stage-0"], "whatever is there"),
        (["patch-all-first-today"], "everything patched first, today"),
        (["google-auth-2.55.1-today"], "google-auth 2.55.1, today"),
        (["requests-2.23-py37"], "requests 2.23, Python 3.7"),
        (["requests-2.21.0-py37"], "requests 2.21.0"),
        (["cured-today"], "cured"),
        (["openssl-1.1.1-today"], "OpenSSL 1.1.1"),
        (["openssl-3.0-today"], "OpenSSL 3.0"),
        # A client, where it is the point.
        (["stage-1-py37", "requests"], "requests"),
        (["httpx-today", "httpx-each"], "httpx, a client each"),
        (["requests-2.32.4-today", "threads"], "requests 2.32.4, threads"),
    ],
)
def test_stacks_are_named_in_words(run, said):
    assert words.stack_label(*run) == said


def test_numbers_in_words():
    assert words.amount(2231.4, "MB") == "2,231 MB" and words.amount(30.0) == "30"
    assert words.amount(0.0521, "s") == "0.052 s" and words.tick(3000.0) == "3,000"
    assert words.seconds(10.048) == "10.0 s" and words.seconds(0.0204) == "20 ms"
    assert words.seconds(0.0999) == "100 ms" and words.times(9.571) == "9.6 times"
    assert words.value_label("connections", 6) == "6 connections"
    assert words.value_label("protocol", "h2") == "HTTP/2"
    assert words.join(["a", "b", "c"]) == "a, b and c"
    with pytest.raises(UsageError):
        words.number(float("nan"))


def test_a_caption_says_in_what_a_recorded_run_differs():
    frame = runs().assign(source="reference", instead="n = 10 instead of 7")
    as_asked = runs("stage-2-py27", SLOW, source="reference")  # in which nothing differs
    for rows in (frame, pd.concat([frame, as_asked])):
        chart = charts.n_against_wall(rows, title="Recorded")
        assert "recorded with n = 10 instead of 7." in chart.caption


def test_a_lost_packet_is_told_with_its_repair_and_what_waited_behind_it():
    alt = charts.packets(PACKETS).alt
    assert "sent again after 8.0 ms; meanwhile 1 packet followed" in alt
    assert "sent again after 0.219 s" in alt
    whole = PACKETS.assign(dropped=False)
    with pytest.raises(UsageError, match="lost no packet"):
        charts.packets(whole)
    never = PACKETS[~PACKETS["is_again"]]
    with pytest.raises(UsageError, match="never got what was lost"):
        charts.packets(never)
