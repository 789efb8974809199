"""The numbers of charts, worked out by hand from rows that are written down."""

import base64
import io
import math
import re
from importlib import import_module
from types import SimpleNamespace

import pandas as pd
import pytest
from matplotlib.figure import Figure
from test_charts import PUBLISHED, runs, visits
from test_machines import run

from casebook import charts
from casebook.cases.many.capacity import Costs
from casebook.charts import (
    capacity_calculator,
    curves,
    frame_arrows,
    matrix,
    series,
    tables,
    timelines,
)
from casebook.charts import figure as page
from casebook.charts.figure import Chart
from casebook.charts.series import Part, Point, Quantity
from casebook.errors import UsageError
from casebook.laboratory.machine_files import Machine

# Modules that the charts of their names stand in front of.
arrivals, dots, of_machines, packets = (
    import_module(f"casebook.charts.{name}")
    for name in ("arrivals", "dots", "of_machines", "packets")
)


def data_of(chart: Chart) -> pd.DataFrame:
    """The rows that a reader takes along."""
    return pd.read_csv(io.BytesIO(base64.b64decode(chart.html.split("base64,")[1].split('"')[0])))


def part(name: str, *values: float, source: str = "live", colour: str = "stage-1") -> Part:
    return Part(name, colour, pd.DataFrame({"wall_s": values, "source": source}))


def points(**medians: float) -> list[Point]:
    return [
        Point.from_runs(part(name, value), pd.Series([value])) for name, value in medians.items()
    ]


WALL = Quantity("wall_s", "wall time", "s")


# ------------------------------------------------------------------------------- what is drawn


def test_memory_is_drawn_in_millions_of_bytes():
    """A KiB is 1,024 bytes: 125,000 of them are 128 MB, and not 125."""
    frame = runs(peak_rss_kib=125_000)
    assert series.usable(frame, "peak_mb")["peak_mb"].tolist() == [128.0] * 4
    assert series.chart_data(frame, "peak_mb")["peak_mb"].tolist() == [128.0] * 4
    assert data_of(charts.dots(frame, "peak_mb", title="x"))["peak_mb"].tolist() == [128.0] * 4
    assert "128 MB" in charts.dots(frame, "peak_mb", title="x").caption
    # What a frame says itself is believed.
    told = frame.assign(peak_mb=7.0)
    assert series.usable(told, "peak_mb")["peak_mb"].tolist() == [7.0] * 4
    assert series.chart_data(told, "peak_mb")["peak_mb"].tolist() == [7.0] * 4


def test_rows_without_a_number_are_left_out_and_all_others_are_drawn():
    frame = runs(walls=((3, (1.0, math.nan, 3.0)),))
    assert series.usable(frame, "wall_s")["wall_s"].tolist() == [1.0, 3.0]
    with pytest.raises(UsageError, match="got no runs"):
        series.usable(frame.assign(wall_s=math.nan), "wall_s")
    with pytest.raises(UsageError, match="needs a column cpu_s"):
        series.usable(frame, "cpu_s")


def test_a_line_goes_through_the_medians_and_keeps_every_run():
    frame = runs(walls=((10, (5.0, 1.0, 4.0, 2.0)), (3, (9.0, 7.0, 8.0))))
    [line] = series.gather(frame)
    assert line.xs == [3, 10] and line.medians == [8.0, 3.0]
    assert [(p.low, p.high) for p in line.points.values()] == [(7.0, 9.0), (1.0, 5.0)]
    assert line.dots == [
        (10, 5.0), (10, 1.0), (10, 4.0), (10, 2.0), (3, 9.0), (3, 7.0), (3, 8.0)
    ]  # fmt: skip


def test_every_run_of_a_chart_is_in_its_data():
    frame = visits()
    chart = charts.dots(frame, "user_s", "client", title="x", order="value")
    assert sorted(data_of(chart)["user_s"]) == sorted(frame["user_s"])
    # Medians 3.32 and 1.0: the smaller one first, and how far they lie apart.
    assert "3.32 s" in chart.caption and "1.00 s" in chart.caption
    assert chart.caption.index("1.00 s") < chart.caption.index("3.32 s")


# ------------------------------------------------------------------------------ what is said


def test_the_least_and_the_most():
    a = points(A=2.0, B=8.0, C=4.0)
    assert [p.label for p in series.ranked(a)] == ["A", "C", "B"]
    assert WALL.describe_range(a, "At n = 3, ") == (
        "At n = 3, wall time: 2.00 s (A) to 8.00 s (B), 4.0 times as long."
    )
    assert WALL.describe_all(a) == (
        "Wall time: A 2.00 s; B 8.00 s; C 4.00 s. The most, B: 4.0 times as long as A."
    )
    assert WALL.describe_range(a[:1]) == "Wall time: A 2.00 s."
    count = Quantity("loads", "loads", "")
    assert (
        count.describe_all(points(A=10, B=30))
        == "Loads: A 10; B 30. The most, B: 3.0 times as much as A."
    )
    # Half as much again is said, less is not; over nothing nothing is divided.
    assert "The most" in WALL.describe_all(points(A=2.0, B=3.0))
    assert "The most" not in WALL.describe_all(points(A=2.0, B=2.99))
    assert WALL.describe_range(points(A=0.0, B=2.0)) == "Wall time: 0 s (A) to 2.00 s (B)."
    assert WALL.describe_range(points(A=2.0, B=2.0)) == "Wall time: 2.00 s (A) to 2.00 s (B)."


def test_medians_rank_and_not_their_largest_runs():
    odd = Point("odd", False, 1.0, 0.9, 99.0)
    assert series.ranked([Point("even", False, 2.0, 1.9, 2.1), odd])[0] is odd


def test_what_was_published_is_ranked_only_where_all_was():
    ours, theirs = part("ours", 3.0), part("theirs", 1.0, source="published")
    both = [Point.from_runs(each, each.rows["wall_s"]) for each in (ours, theirs)]
    assert [p.label for p in series.ranked(both)] == ["ours"]
    assert [p.label for p in series.ranked(both[1:])] == ["theirs, published"]


def test_a_spread_is_from_the_smallest_to_the_largest():
    own = Point.from_runs(part("A", 1.0, 5.0, 2.0), pd.Series([1.0, 5.0, 2.0]))
    assert (own.low, own.middle, own.high) == (1.0, 2.0, 5.0)
    assert own.spread("s") == " (1.00–5.00)" and WALL.describe_all([own]).endswith(
        "A 2.00 s (1.00–5.00)."
    )
    assert Point.from_runs(part("A", 2.0), pd.Series([2.0, 2.001])).spread("s") == ""
    assert series.span(pd.Series([1.3, 0.97])) == "0.97 to 1.3"
    assert series.span(pd.Series([1.0, 1.001])) == "1.0"


@pytest.mark.parametrize(
    ("values", "spans"),
    [([1, 10], True), ([1, 9.99], False), ([0, 10], False), ([-1, 10], False), ([5], False)],
)
def test_a_decade(values, spans):
    assert series.spans_a_decade(values) is spans


def test_a_scale_is_as_asked_else_as_usual():
    assert series.is_log(None, True, [1], "x") is True
    assert series.is_log(False, True, [1], "x") is False
    assert series.is_log(True, False, [1], "x") is True
    for least in (0, -1):
        with pytest.raises(UsageError, match="cannot show"):
            series.is_log(True, False, [least, 5], "x")


def test_rows_of_dots_in_the_order_that_was_asked_for():
    three = [part("b", 3.0, 1.0), part("a", 5.0), part("c", 1.0, 9.0, 1.0)]
    for each in three:
        each.rows["stack"] = each.name
    assert [p.name for p in dots._sort_parts(three, "stack", "wall_s", None)] == ["b", "a", "c"]
    assert [p.name for p in dots._sort_parts(three, "stack", "wall_s", "value")] == ["c", "b", "a"]
    assert [p.name for p in dots._sort_parts(three, "stack", "wall_s", ["c", "a"])] == [
        "c",
        "a",
        "b",
    ]


def test_five_medians_are_said_by_their_ends_or_by_what_they_share():
    far = [
        part(name, value) for name, value in zip("abcde", (5.0, 1.0, 2.0, 3.0, 4.0), strict=True)
    ]
    brief, whole = dots._describe_medians(WALL, far)
    assert brief == "Wall time: 1.00 s (b) to 5.00 s (a), 5.0 times as long."
    assert whole.startswith("Wall time: a 5.00 s; b 1.00 s; c 2.00 s; d 3.00 s; e 4.00 s.")
    counts = [part(name, value) for name, value in zip("abcde", (3, 0, 3, 0, 3), strict=True)]
    brief, _ = dots._describe_medians(Quantity("wall_s", "loads", ""), counts)
    assert brief == "Loads: 3 for a; c; e. 0 for b; d."


# ------------------------------------------------------------------------ machines side by side

CASE = of_machines.CASES[0]


def fetching(name: str, quick: list[float], slow: list[float]) -> Machine:
    """A machine that fetched ten pages a number of times, with grequests and with pyOpenSSL."""
    answers = [
        run(n=10, stack=stack, wall_s=wall_s, repeat=repeat)
        for stack, walls in (("stage-1-py37", quick), ("stage-2-py37", slow))
        for repeat, wall_s in enumerate(walls, 1)
    ]
    return Machine(name, {}, answers)


def test_all_rounds_of_a_machine_are_drawn_the_last_one_too():
    few = fetching("a", [0.2, 0.3, 0.4], [1.2, 1.3, 1.4])
    many = fetching("b", [1.0 + n for n in range(10)], [20.0 + n for n in range(10)])
    [chart] = charts.of_machines([few, many])
    rows = data_of(chart)
    assert rows[rows["machine"] == "a"]["grequests"].tolist() == [0.2, 0.3, 0.4]
    assert rows[rows["machine"] == "a"]["+ pyOpenSSL"].tolist() == [1.2, 1.3, 1.4]
    # Eight rounds of each at most: 1 to 8, whose median is 4.5, and 20 to 27.
    assert rows[rows["machine"] == "b"]["grequests"].tolist() == [1.0 + n for n in range(8)]
    assert "times as much: 4.33 on a and 5.22 on b" in chart.caption  # 1.3 / 0.3, 23.5 / 4.5


def test_a_round_that_one_way_lacks_is_not_drawn():
    short = fetching("a", [0.2, 0.3, 0.4], [1.2, 1.3])
    [chart] = charts.of_machines([short, fetching("b", [0.1], [1.0])])
    rows = data_of(chart)
    assert rows[["machine", "grequests"]].values.tolist() == [["a", 0.2], ["a", 0.3], ["b", 0.1]]


def test_machines_that_agree_and_machines_that_differ():
    def said(*walls: tuple[float, float]) -> str:
        frames = [pd.DataFrame({"grequests": [a], "+ pyOpenSSL": [b]}) for a, b in walls]
        parts = [
            of_machines._MachinePart(name, "stage-1", frame)
            for name, frame in zip("abc", frames, strict=False)
        ]
        return of_machines._finding(CASE, parts)

    assert said((1, 8), (2, 4)) == (
        "On both that were asked, + pyOpenSSL takes the most wall time and grequests the least; "
        "times as much: 8.00 on a and 2.00 on b."
    )
    assert said((1, 8), (2, 4), (1, 3)).startswith("On all 3 that were asked, + pyOpenSSL takes")
    assert said((8, 1), (4, 2)).startswith("On both that were asked, grequests takes the most")
    assert said((1, 8), (4, 2)) == (
        "The machines differ in which way takes the least wall time: on a grequests; "
        "on b + pyOpenSSL."
    )


# ------------------------------------------------------------------------------------ other charts


def test_a_cell_of_the_matrix_has_the_best_round_of_the_largest_n():
    frame = runs("stage-1-py27", ((3, (0.3,)), (10, (5.0, 2.0, 4.0))))
    cell = matrix._cell(frame, "fast", False)
    assert "concurrent" in cell and "5.0 at a time" in cell  # 10 pages in 2 delays of 1 s
    assert "published: fast<" in cell and "different here" not in cell
    assert "published: slow, different here" in matrix._cell(frame, "slow", False)
    assert matrix._cell(frame[:0], None, False) == "–"
    assert matrix._cell(frame[:0], "slow", False).startswith("not measured")


def test_a_cell_of_the_matrix_is_recorded_where_all_of_its_runs_are():
    here, there = runs("stage-1-py27"), runs("stage-1-py27", source="reference")
    assert ">recorded<" in matrix._cell(there, None, False)
    assert "recorded" not in matrix._cell(here, None, False)
    assert "recorded" not in matrix._cell(pd.concat([there, here]), None, False)


def test_the_matrix_counts_stacks_and_agreement():
    found = {"stage-1-py27": "concurrent", "stage-2-py27": "serial", "stage-3-py27": "serial"}
    said = {"stage-1-py27": "fast", "stage-2-py27": "fast", "stage-9-py27": "slow"}
    text = matrix._finding(found, said)
    assert text.startswith("1 of 3 stacks are concurrent; serial: ")
    assert text.endswith(". 1 of 2 verdicts are as published.")


def frame_rows() -> pd.DataFrame:
    """A request on stream 1, and one DATA frame in three parts; the connection's own first."""
    rows = [
        (5.0, "client", "SETTINGS", 0, "", 18),
        (5.0104, "client", "HEADERS", 1, "END_STREAM|END_HEADERS", 30),
        (5.06, "server", "DATA", 1, "", 1000),
        (5.07, "server", "DATA", 1, "", 500),
        (5.2604, "server", "DATA", 1, "", 1),
        (5.2604, "client", "WINDOW_UPDATE", 0, "", 4),
    ]
    names = ["t_s", "sender", "type", "stream", "flags", "length"]
    return pd.DataFrame(rows, columns=names)


def test_frames_in_a_row_are_one_arrow_with_their_bytes_together():
    arrows = frame_arrows._arrows(frame_rows())
    assert [(a.moment, a.label) for a in arrows] == [
        ("0.0", "SETTINGS"), ("10.4", "HEADERS"), ("60.0", "DATA × 3"), ("260", "WINDOW_UPDATE")
    ]  # fmt: skip
    assert arrows[2].details == ["stream 1", "1,501 bytes"]
    assert arrows[1].details == ["stream 1", "30 bytes", "END_STREAM, END_HEADERS"]
    assert arrows[0].details[0] == "connection"
    # From its first frame to its last: 250 ms.
    assert frame_arrows._finding(frame_rows()) == (
        "6 frames: the client sent 1 SETTINGS, 1 HEADERS and 1 WINDOW_UPDATE; the server sent "
        "3 DATA. Stream 1 took 0.250 s and brought 1,501 bytes of data."
    )


def test_only_packets_with_new_data_followed_a_lost_one():
    """Of what was sent until the loss was repaired, what had been sent before is nothing new."""
    rows = [
        # ms, seq, is_again, dropped
        (0, 0, False, False), (1, 1000, False, True), (2, 2000, False, False),
        (3, 0, True, False), (4, 3000, False, False), (9, 1000, True, False),
        (10, 4000, False, False),
    ]  # fmt: skip
    frame = pd.DataFrame(
        [
            {"client": "bare-h2", "t_s": ms / 1000, "direction": "back", "connection": 0}
            | {"seq": seq, "bytes": 1000, "is_again": is_again, "dropped": dropped}
            for ms, seq, is_again, dropped in rows
        ]
    )
    alt = charts.packets(frame).alt
    assert "sent again after 8.0 ms; meanwhile 2 packets followed on its connection." in alt


def test_a_call_takes_until_its_own_return_and_not_that_of_a_later_one():
    rows = [
        # t_s, greenlet, depth, function, event
        (0.0, 1, 0, "recv", "call"), (0.1, 1, 1, "poll", "call"), (0.5, 2, 1, "poll", "return"),
        (0.6, 1, 1, "poll", "return"), (2.0, 1, 1, "close", "call"), (2.1, 1, 1, "close", "return"),
        (3.0, 1, 0, "recv", "return"), (5.0, 1, 1, "poll", "call"), (5.2, 1, 1, "poll", "return"),
    ]  # fmt: skip
    columns = ["t_s", "greenlet", "depth", "function", "event"]
    frame = pd.DataFrame(rows, columns=columns).assign(file="wait.py", line=99)
    # Of both calls of poll the first is longer: half a second, and not until 5.2 s.
    assert "▶   poll  wait.py:99  ◀ 0.500 s pass here" in charts.trace(frame, "poll").text
    assert "◀ 3.00 s pass here" in charts.trace(frame, "recv").text
    with pytest.raises(UsageError, match="no call of this trace contains 'poll'"):
        charts.trace(frame[frame["event"] == "call"], "poll")


def test_requests_that_were_sent_early_and_those_that_waited_at_once_are_counted():
    """Three requests: two are out when the first response is in, and two wait at once at most."""
    parts = [
        # page, sent, waited from, to, received
        (0, 0.1, 0.2, 1.0, 1.1), (1, 0.2, 0.3, 1.3, 1.4), (2, 1.15, 1.3, 2.0, 2.1)
    ]  # fmt: skip
    frame = pd.DataFrame(
        [
            {"page": page, "event": event, "start_s": start, "end_s": end}
            for page, sent, start, end, received in parts
            for event, start, end in (
                ("send", sent, sent), ("wait", start, end), ("receive", end, received)
            )
        ]
    )  # fmt: skip
    seen = SimpleNamespace(
        frame=frame, heartbeats=[0.1, 0.9, 1.0], delay_s=0.8, stack="stage-1-py27",
        source="live", measured_at="2026-11-20T11:05:00Z",
    )  # fmt: skip
    alt = timelines._Timeline("one stack", seen).alt()
    assert alt == (
        "One stack: 3 requests in 2.10 s, 2 waiting at once at most. 2 of 3 had been sent before "
        "the first response was in. The event loop was blocked for 1.10 s at longest."
    )
    panel = timelines._Timeline("one stack", seen).panel(2.1)
    assert (panel["delay"], panel["stall"], panel["end"]) == (800.0, 90.0, 2142.0)


def test_a_mark_is_full_where_it_was_measured_half_where_recorded_hollow_where_published():
    axes = Figure().add_subplot()
    for source in ("live", "reference", "published"):
        page.marks(axes, [1.0], [1.0], "stage-1", marker="o", source=source)
    assert [line.get_fillstyle() for line in axes.get_lines()] == ["full", "left", "none"]


def test_of_lines_with_one_name_the_uppermost_has_the_label():
    labels = [curves._EndLabel(text, 10.0, y, colour) for text, y, colour in (
        ("requests", 5.0, "stage-0"), ("requests", 9.0, "stage-0"), ("requests", 7.0, "stage-1"),
        ("aiohttp", 1.0, "stage-0"), ("requests", 6.0, "stage-0"),
    )]  # fmt: skip
    kept = {(label.text, label.colour): label.y for label in curves._without_doubles(labels)}
    assert kept == {
        ("requests", "stage-0"): 9.0, ("requests", "stage-1"): 7.0, ("aiohttp", "stage-0"): 1.0
    }  # fmt: skip


def test_what_can_be_read_goes_on_where_a_repair_overlaps_what_is_there():
    """0 to 100 is there; 100 to 200 is lost, and comes again in a packet that begins at 50."""
    rows = pd.DataFrame(
        [(0.0, 0, 100, True), (0.0, 100, 100, False), (1.0, 200, 50, True), (9.0, 50, 150, True),
         (9.5, 300, 10, True)],
        columns=["ms", "seq", "bytes", "arrives"],
    )  # fmt: skip
    rows["dropped"] = ~rows.pop("arrives")
    loss = packets._Loss(part("A"), rows, rows.iloc[1], rows.iloc[3])
    times, levels = loss.readable()
    assert times == [0.0, 0.0, 1.0, 9.0, 9.5]
    # All up to 250 at once; what begins at 300 waits for what lies between.
    assert levels == [0.0, 0.1, 0.1, 0.25, 0.25]


def test_arrivals_say_who_waited_for_the_slow_book():
    rows = pd.DataFrame({
        "client": "a", "book": ["b1", "b2", "b3", "b4", "b5"], "at_s": [0.1, 0.2, 1.5, 1.6, 0.3],
        "slow": [False, False, True, False, False],
    })  # fmt: skip
    visit = arrivals._visit(Part("A", "stage-1", rows.assign(source="live")))
    assert visit.times == [0.1, 0.2, 0.3, 1.5, 1.6] and visit.slow == [3]
    # Four others at 0.1, 0.2, 0.3 and 1.6 s: half of them are in at 0.2.
    assert arrivals._describe(visit) == (
        "A: 3 of 4 other books before the slow one, which came at 1.50 s; half of them by 0.200 s, "
        "the last at 1.60 s."
    )
    assert arrivals._is_slow("b3", "b3: 1 s; b7: 2 s") and arrivals._is_slow(7, "b3: 1 s; 7: 2 s")
    assert not arrivals._is_slow("b", "b3: 1 s")


def test_the_still_of_the_calculator_has_the_models_numbers():
    """A page costs 2 ms, a batch of 100 another 100, a connection 3 and a load 15.

    That is 6 ms cured and 21 stock. A billion of them: 1,667 and 5,833 hours of a core, on 16 cores
    for 24 hours. Ten million batches of 36 ms of a scheduler: 100 hours, so 5 schedulers.
    """
    costs = Costs(
        page_ms=2, task_ms=100, engine_task_ms=36, connection_ms=3, handshake_ms=1, load_ms=15,
        worker_second_ms=0, thread_second_ms=0, engine_second_ms=0,
        server_page_ms=0, server_batch_ms=0, memory_mib=64,
    )  # fmt: skip
    html = capacity_calculator.capacity(costs, 0.05, "Machines and money").html
    rows = html.split("<tbody>")[1].split("</tr>")[:2]
    numbers = [re.findall(r"<td[^>]*>([^<]*)</td>", row) for row in rows]
    assert numbers == [["21.0", "762", "16", "5", "292"], ["6.0", "2,667", "5", "5", "83"]]


@pytest.mark.parametrize(
    ("name", "values", "decimals"),
    [
        ("loads", [3.0, 100.0], 0),
        ("wall_s", [3.0, 4.0], 2),  # a time is no count
        ("wall_s", [0.5, 12.3], 1),
        ("wall_s", [0.05, 0.2], 3),
        ("cpu_ms", [0.5, 1234.0], 1),
        ("share", [0.0, 0.0], 0),
        ("off", [-250.5, 1.0], 1),
    ],
)
def test_the_decimals_of_a_column_are_those_of_its_largest_number(name, values, decimals):
    assert tables._decimals(pd.Series(values, name=name)) == decimals


def test_columns_are_called_with_their_units():
    assert [tables.header(name) for name in ("loop_s", "cpu_beside_ms", "free_kib", "peak_mb")] == [
        "loop, s", "CPU beside, ms", "free, KiB", "peak memory, MB"
    ]  # fmt: skip
    assert tables.header("in words") == "in words"


def test_how_many_columns_tell_rows_apart():
    def apart(*rows: str) -> int:
        return tables._telling_apart([tuple(row) for row in rows])

    assert apart("ax12", "bx12") == 1
    assert apart("ax12", "ay12", "bx32") == 2
    assert apart("ax12", "ax22") == 1  # only nearly all would
    assert apart() == 1


def test_published_lines_are_in_the_frame_as_they_were_printed():
    [line] = series.gather(PUBLISHED)
    assert line.dots == [(3, 3.3), (10, 11.0)] and line.source == "published"
