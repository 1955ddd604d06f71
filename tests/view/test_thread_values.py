"""The picture of a thread-value layout, as text and as SVG."""

from __future__ import annotations

from textwrap import dedent
from xml.etree import ElementTree

from tilejit.cute import Layout, make_layout_tv, parse, show_layout_tv


def test_the_picture_as_text() -> None:
    tiler, layout_tv = make_layout_tv(Layout((2, 2), (2, 1)), Layout((1, 2)))
    wanted = """\
        ((2,2),2):((4,1),2), 4 threads of 2 values in 2 x 4
                 0      1      2      3
            +------+------+------+------+
         0  | T0V0 | T0V1 | T1V0 | T1V1 |
            +------+------+------+------+
         1  | T2V0 | T2V1 | T3V0 | T3V1 |
            +------+------+------+------+"""
    assert repr(show_layout_tv(layout_tv, tiler)) == dedent(wanted)


def test_elements_with_several_threads_and_with_none() -> None:
    picture = show_layout_tv(parse("(4,3):(0,2)"), 6).text
    assert "| T0V0+3 |        | T0V1+3 |        | T0V2+3 |        |" in picture
    assert "the first 64 x 1 of 100 x 1" in show_layout_tv(parse("(10,10):(1,10)"), (100, 1)).text


def test_the_picture_as_svg() -> None:
    picture = show_layout_tv(parse("((4,8),(2,2)):((32,1),(16,8))"), (16, 8))
    root = ElementTree.fromstring(picture.svg)
    texts = [node.text for node in root.iter("{http://www.w3.org/2000/svg}text")]
    assert [text for text in texts if text and text.startswith("T5V")] == ["T5V0", "T5V1", "T5V2", "T5V3"]
    titles = [node.text for node in root.iter("{http://www.w3.org/2000/svg}title")]
    assert "element [9, 3]: thread 5, value 3" in titles
    assert picture._repr_html_().startswith("<div")
    empty = show_layout_tv(parse("(2,2):(0,0)"), (1, 3)).svg
    assert "element [0, 2]: no thread" in empty
