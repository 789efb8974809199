"""Charts: what they say, that it can be read, and that nothing recorded passes for live."""

import itertools
import re
from types import SimpleNamespace

import pandas as pd
import pytest

from casebook import charts, colours, tables, words
from casebook.charts import figure, labels
from casebook.errors import UsageError

#: The pages that figures stand on: the book's and JupyterLab's, light and dark.
GROUNDS = ("#ffffff",), ("#14181e", "#121212", "#111111")

#: How a colour is seen without one kind of cone (Machado, Oliveira and Fernandes 2009).
BLINDNESS = {
    "protanopia": (
        (0.152286, 1.052583, -0.204868),
        (0.114503, 0.786281, 0.099216),
        (-0.003882, -0.048116, 1.051998),
    ),
    "deuteranopia": (
        (0.367322, 0.860646, -0.227968),
        (0.280085, 0.672501, 0.047413),
        (-0.011820, 0.042940, 0.968881),
    ),
    "tritanopia": (
        (1.255528, -0.076749, -0.178779),
        (-0.078411, 0.930809, 0.147602),
        (0.004733, 0.691367, 0.303900),
    ),
}


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
            "source": "live",
            "measured_at": "2026-11-20T11:05:00Z",
        }
        | also
        for n, times in walls
        for repeat, wall in enumerate(times, 1)
    ]
    return pd.DataFrame(rows)


SLOW = ((3, (3.1, 3.2)), (10, (10.2, 10.4)))
PUBLISHED = runs(
    "stage-0-py27", ((3, (3.3,)), (10, (11.0,))), source="published", published_in="001_talk.txt"
).drop(columns="measured_at")


def timeline(stack="stage-2-py27", serial=True, **also) -> SimpleNamespace:
    rows = []
    for page in range(4):
        start = page * 0.1 if serial else page * 0.01
        rows += [
            (page, "connect", 0.0, 0.005),
            (page, "handshake", start + 0.01, start + 0.02),
            (page, "send", start + 0.02, start + 0.021),
            (page, "wait", start + 0.021, start + 0.1),
            (page, "receive", start + 0.1, start + 0.105),
        ]
    frame = pd.DataFrame(rows, columns=["page", "event", "start_s", "end_s"])
    beats = [0.005, 0.1, 0.2, 0.3] if serial else [i / 100 for i in range(14)]
    made = {"stack": stack, "frame": frame, "heartbeats": pd.Series(beats), "source": "live"}
    return SimpleNamespace(**made, **{"measured_at": "2026-11-20T11:05:00Z"} | also)


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


def every_chart() -> dict[str, str]:
    both = pd.concat([runs(), runs("stage-2-py27", SLOW), runs(scheme="http")])
    return {
        "n against wall": charts.n_against_wall(both, PUBLISHED, limit_s=1, expected=1.02).html,
        "stages": charts.stages(both, limit_s=1).html,
        "matrix": charts.verdict_matrix(both).html,
        "timeline": charts.timeline([timeline(), timeline("stage-1-py27", False)]).html,
        "concurrency": charts.effective_concurrency(both).html,
        "cures": charts.cures(both[both["scheme"] == "https"], limit_s=1).html,
        "profile": charts.profile_rows(PROFILE, "do_poll").html,
        "trace": charts.trace(TRACE).html,
        "provenance": charts.provenance(PROVENANCE).html,
    }


@pytest.mark.parametrize("name", [*colours.COLOURS, "ink", "faint"])
def test_each_colour_can_be_read_as_text_on_each_page(name):
    for colour, grounds in zip((colours.COLOURS | colours.INK)[name], GROUNDS, strict=True):
        for ground in grounds:
            assert colours.contrast(colour, ground) >= 4.5


@pytest.mark.parametrize("blindness", BLINDNESS)
@pytest.mark.parametrize("version", [0, 1])
def test_the_stages_stay_apart_for_every_kind_of_sight(blindness, version):
    names = ["requests", "stage-0", "stage-1", "stage-2", "stage-3", "stage-4"]
    seen = {name: _seen(colours.COLOURS[name][version], BLINDNESS[blindness]) for name in names}
    for one, other in itertools.combinations(names, 2):
        apart = sum((a - b) ** 2 for a, b in zip(seen[one], seen[other], strict=True)) ** 0.5
        assert apart > 0.07, (one, other)


def _seen(colour: str, matrix) -> tuple[float, float, float]:
    """A colour in Oklab (Ottosson 2020), where distances are as people see them."""
    light = colours.linear_rgb(colour)
    r, g, b = (
        min(1, max(0, sum(m * c for m, c in zip(row, light, strict=True)))) for row in matrix
    )
    long = (0.4122214708 * r + 0.5363325363 * g + 0.0514459929 * b) ** (1 / 3)
    mid = (0.2119034982 * r + 0.6806995451 * g + 0.1073969566 * b) ** (1 / 3)
    short = (0.0883024619 * r + 0.2817188376 * g + 0.6299787005 * b) ** (1 / 3)
    return (
        0.2104542553 * long + 0.7936177850 * mid - 0.0040720468 * short,
        1.9779984951 * long - 2.4285922050 * mid + 0.4505937099 * short,
        0.0259040371 * long + 0.7827717662 * mid - 0.8086757660 * short,
    )


def test_a_stack_has_the_same_colour_in_every_chart():
    slow = runs("stage-2-py37", SLOW)
    for chart in (
        charts.n_against_wall(slow),
        charts.cures(slow),
        charts.effective_concurrency(slow),
        charts.stages(slow),
    ):
        drawn = re.findall(r"var\(--cb-(stage-\d|indigo|olive)", chart.html.split("</style>")[1])
        assert set(drawn) == {"stage-2"}


def test_every_colour_follows_the_page():
    for name, html in every_chart().items():
        for svg in re.findall(r"<svg.*?</svg>", html, flags=re.S):
            bare = re.sub(r"var\(--(?:[^()]|\([^()]*\))*\)", "", svg)
            assert not re.search(r"#[0-9a-f]{6}\b", bare), name


def test_a_drawing_has_no_rule_for_the_rest_of_the_page():
    for html in every_chart().values():
        assert html.count("<style") == 1 and not re.search(r"[}>,]\s*\*", html.split("<svg")[0])


def test_both_themes_are_in_the_piece_itself():
    for html in every_chart().values():
        assert "html[data-theme=dark]" in html and "body[data-jp-theme-light=false]" in html


def test_ids_are_unique_on_a_page_and_lead_somewhere():
    page = "".join(every_chart().values())
    page += charts.n_against_wall(runs(), name="n-against-wall-again").html
    ids = re.findall(r'\bid="([^"]+)"', page)
    assert len(ids) == len(set(ids)) > 20
    assert set(re.findall(r'(?:url\(#|href="#)([^)"]+)', page)) <= set(ids)


def test_the_same_runs_give_the_same_bytes():
    assert every_chart() == every_chart()


def test_drawings_are_responsive_and_have_an_alternative_text():
    for html in every_chart().values():
        for svg in re.findall(r"<svg[^>]*>", html):
            assert "viewBox" in svg and not re.search(r'\s(width|height)="', svg)
            assert ('role="img" aria-label="' in svg) != ('aria-hidden="true"' in svg)


def test_the_alternative_text_states_the_finding():
    both = pd.concat([runs(), runs("stage-2-py27", SLOW)])
    alt = charts.n_against_wall(both, limit_s=1).alt
    assert "At n = 10" in alt and "10.3 s (10.2–10.4)" in alt and "7.4 times" in alt
    assert alt in charts.n_against_wall(both, limit_s=1)._repr_mimebundle_()["text/plain"]
    faster = charts.n_against_wall(both.assign(wall_s=both["wall_s"] / 2), limit_s=1).alt
    assert "5.15 s" in faster


def test_the_caption_says_where_and_when():
    live = charts.n_against_wall(runs()).caption
    assert "Measured on this machine, 20 November 2026, 11:05 UTC." in live
    recorded = charts.n_against_wall(runs(source="reference")).caption
    assert "Recorded on the reference machine, 20 November 2026, not measured now." in recorded
    assert "Measured on this machine" not in recorded
    mixed = pd.concat([runs(), runs("stage-2-py27", SLOW, source="reference")])
    mixed = charts.n_against_wall(mixed, PUBLISHED).caption
    assert "Stage 2, Python 2.7: recorded on the reference machine" in mixed
    assert "Published in the talk" in mixed and "hollow dots and dashes: published" in mixed
    assert "stage 2, Python 2.7, reference" in mixed


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
    chart = charts.n_against_wall(quick, PUBLISHED, limit_s=0.1, expected=0.11)
    assert "wall time, in delays" in chart.html
    assert "stage 2, Python 2.7 11.0 delays; stage 0, Python 2.7, published 11.0" in chart.alt
    assert "one delay: 0.1 s and 1 s" in chart.caption


def test_axes_are_logarithmic_only_where_n_spans_a_decade():
    assert "logarithmic" not in charts.n_against_wall(runs()).caption
    wide = runs(walls=((3, (1.1,)), (100, (2.0,))))
    assert "both axes logarithmic" in charts.n_against_wall(wide).caption


def test_boxes_are_moved_apart_as_little_as_needed():
    assert labels.apart([10, 50], [10, 10], 0, 100) == [10, 50]
    assert labels.apart([50, 50], [10, 10], 0, 100) == [45, 55]
    assert labels.apart([2, 3, 99], [10, 10, 10], 0, 100) == [5, 15, 95]
    assert labels.apart([3, 2], [10, 10], 0, 100) == [15, 5]


def test_labels_at_the_ends_of_lines_never_overlap():
    ends = [
        labels.EndLabel(f"stage {i}, Python 2.7, reference", 10, 1 + i / 50, "#000000")
        for i in range(6)
    ]
    with figure.drawing(figure.WIDTH, 262) as drawn:
        axes = drawn.add_subplot()
        axes.set_xlim(0, 10)
        axes.set_ylim(0, 10)
        figure.place(axes, 20, 30, labels.room(drawn, ends), 20)
        labels.draw(axes, ends)
        boxes = [figure.extent(text) for text in drawn.texts]
    assert len(boxes) == 6
    for one, other in itertools.combinations(boxes, 2):
        assert not one.overlaps(other)
    for box in boxes:
        assert 0 <= box.x0 and box.x1 <= figure.WIDTH and 0 <= box.y0 and box.y1 <= 262


def test_no_text_of_a_line_chart_leaves_the_drawing():
    long = pd.concat([runs("google-auth-2.55.1-today"), runs("requests-2.23-py37", SLOW)])
    html = charts.n_against_wall(long, limit_s=1, expected=1.02).html
    width = float(re.search(r'viewBox="0 0 ([\d.]+)', html)[1])
    with figure.drawing(figure.WIDTH, 100) as drawn:
        for x, text in re.findall(r'<text[^>]* x="([\d.]+)"[^>]*>([^<]+)</text>', html):
            assert float(x) + figure.width_of(drawn, text, 5) <= width + 1


def test_stages_names_each_verdict_and_the_control():
    frame = pd.concat([runs(), runs("stage-2-py37", SLOW), runs("stage-2-py37", scheme="http")])
    chart = charts.stages(frame, limit_s=1)
    for text in ("stage 1: concurrent", "stage 2: serial", "not measured", "Python 3.7"):
        assert f">{text}<" in chart.html
    assert "Over plain HTTP the slowest of all runs at n = 10 took 1.50 s, over HTTPS 10.4 s"
    assert "over HTTPS 10.4 s" in chart.alt


def test_the_matrix_shows_ours_beside_the_published():
    said = pd.DataFrame(
        {
            "stack": ["stage-1-py27", "stage-2-py27", "stage-0-py37"],
            "published": ["fast", "fast", "fast"],
            "source": "published",
            "published_in": "001_talk.txt",
        }
    )
    frame = pd.concat([runs(), runs("stage-2-py27", SLOW, source="reference")])
    chart = charts.verdict_matrix(frame, said)
    text = re.sub(r"<[^>]+>", " ", chart.html.split("</style>")[1])
    assert "published: fast , not so here".replace(" ,", ",") in re.sub(r" +", " ", text)
    assert "7.7 at a time" in text and "not measured" in text and "reference machine" in text
    assert "1 of 2 verdicts are as published" in chart.alt
    assert chart._repr_mimebundle_()[figure.FIGURE]["name"] == "verdicts-by-stage-and-python"


def test_tables_have_captions_headers_and_no_empty_cell():
    pieces = every_chart()
    pieces["frame"] = tables.show(runs(), "Some runs").html
    for name in ("matrix", "profile", "provenance", "frame"):
        html = pieces[name]
        assert re.search(r"<caption>[^<]+</caption>", html)
        assert re.search(r'role="group" tabindex="0" aria-label="[^"]+"', html)
        assert all('scope="' in cell for cell in re.findall(r"<th[^>a-z]?[^>]*>", html)[1:])
        assert not re.search(r"<t[hd][^>]*>\s*</t[hd]>", html)


def test_a_table_says_its_source_in_words_and_aligns_its_numbers():
    shown = tables.show(
        runs(source="reference")[["stack", "n", "wall_s", "source"]],
        "Some <runs>",
        formats={"wall_s": ".1f"},
    )
    assert "<td>reference machine</td>" in shown.html
    assert '<td class="cb-number">1.3</td>' in shown.html
    assert '<th scope="col" class="cb-number">wall time, s</th>' in shown.html
    assert "Some &lt;runs&gt;" in shown.html and "Some <runs>" in shown.text
    assert "Recorded on the reference machine" in shown.html
    assert tables.show(pd.DataFrame({"a": [1.0, None]}), "x").html.count("–") == 1


def test_a_table_refuses_what_it_cannot_show():
    with pytest.raises(UsageError, match="no rows"):
        tables.show(pd.DataFrame(), "Nothing")
    with pytest.raises(UsageError, match="caption"):
        tables.show(runs(), " ")
    with pytest.raises(UsageError, match="wall_ms"):
        tables.show(runs(), "x", formats={"wall_ms": ".1f"})


def test_a_timeline_counts_what_it_shows():
    chart = charts.timeline([timeline(), timeline("stage-1-py27", False)])
    assert "Stage 2, Python 2.7: 4 requests in 0.405 s, 1 waiting at once at most" in chart.alt
    assert "1 of 4 had been sent before the first response was in" in chart.alt
    assert "The event loop stood still for 0.105 s at longest" in chart.alt
    assert "Stage 1, Python 2.7: 4 requests in 0.135 s, 4 waiting at once at most" in chart.alt
    assert chart.html.count('role="img"') == 2
    for word in ("connect", "handshake", "send", "wait", "receive"):
        assert f"<span>{word}</span>" in chart.html


def test_a_stall_is_a_pause_between_heartbeats():
    from casebook.charts.timelines import stalls

    assert stalls([0.01, 0.02, 0.5, 0.51], 0.52, 0.05) == [(0.02, 0.5)]
    assert stalls([0.3], 0.31, 0.05) == [(0.0, 0.3)]


def test_cures_are_sorted_and_the_delay_is_a_line():
    frame = pd.concat([runs("stage-2-injected-today", SLOW), runs("extract-today")])
    chart = charts.cures(frame, limit_s=1.0)
    assert chart.html.index(">extract, today<") < chart.html.index(">stage 2 injected, today<")
    assert ">one delay, 1 s<" in chart.html and ">10.3 s, serial<" in chart.html
    assert "At n = 10, extract, today is the fastest, 1.40 s" in chart.alt


def test_effective_concurrency_says_whether_verdicts_lie_apart():
    frame = pd.concat([runs(), runs("stage-2-py27", SLOW)])
    chart = charts.effective_concurrency(frame)
    assert "No serial run is above 0.98 and no concurrent one below 2.5." in chart.alt
    assert ">1: one at a time<" in chart.html and ">from 1.5: concurrent<" in chart.html
    both = charts.effective_concurrency(frame.assign(load="busy"), by=["verdict", "load"])
    assert ">serial, busy<" in both.html


def test_a_profile_marks_the_telling_line_and_writes_calls_as_pstats_does():
    shown = charts.profile_rows(PROFILE, "do_poll", top=1)
    assert "▶ urllib3/util/wait.py:99(do_poll)  30  0.001  9.900" in shown.text
    assert "pyopenssl" not in shown.text
    assert "20/10" in charts.profile_rows(PROFILE).text
    assert shown.html.count("cb-marked>") == 1
    with pytest.raises(UsageError, match="contains 'do_select'"):
        charts.profile_rows(PROFILE, "do_select")


def test_a_trace_marks_the_call_that_blocks():
    shown = charts.trace(TRACE)
    marked = re.findall(r"<mark>(.*?)</mark>", shown.html)
    assert len(marked) == 1 and "▶     poll  wait.py:99  ◀ 1.00 s pass here" in marked[0]
    assert "▶   do_poll  wait.py:99  ◀ 1.00 s pass" in charts.trace(TRACE, "do_poll").text
    assert "&lt;send&gt;" in shown.html and "greenlet 2" in shown.text
    with pytest.raises(UsageError):
        charts.trace(TRACE, "no_such_function")


def test_provenance_marks_what_changed():
    shown = charts.provenance(PROVENANCE)
    assert "ssl.SSLContext  ssl.SSLContext  ▲ gevent._sslgte279.SSLContext" in shown.text
    assert "select.poll  select.poll  same" in shown.text
    assert shown.html.count("<strong>▲") == 1
    with pytest.raises(UsageError, match="no step 'after lunch'"):
        charts.provenance(PROVENANCE, steps=["after lunch"])


def test_a_chart_without_runs_says_what_to_do():
    with pytest.raises(UsageError, match="no runs"):
        charts.n_against_wall(runs().iloc[:0])
    with pytest.raises(UsageError, match="wall_s"):
        charts.n_against_wall(runs().drop(columns="wall_s"))


@pytest.mark.parametrize(
    ("stack", "said"),
    [
        ("stage-2-py27", "stage 2, Python 2.7"),
        ("stage-0", "stage 0"),
        ("patch-all-first-today", "patch all first, today"),
        ("google-auth-2.55.1-today", "google auth 2.55.1, today"),
        ("requests-2.23-py37", "requests 2.23, Python 3.7"),
    ],
)
def test_stacks_are_named_in_words(stack, said):
    assert words.stack_label(stack) == said


def test_numbers_in_words():
    assert words.seconds(10.048) == "10.0 s" and words.seconds(0.0204) == "20 ms"
    assert words.seconds(0.0999) == "100 ms" and words.times(9.571) == "9.6 times"
    assert words.join(["a", "b", "c"]) == "a, b and c"
    with pytest.raises(UsageError):
        words.number(float("nan"))
