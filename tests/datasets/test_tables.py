"""Files into rows of cells: no row is lost, split or joined unseen, whatever the format and the encoding."""

import gzip
import json

import pytest
from pair_files import GOOD, HEADER, reasons, whiteningbert, write, write_records

from whitelab.datasets import (
    DataError,
    MalformedRows,
    discover,
    load,
    load_labelled,
    load_text,
    open_pasted,
    tables,
)

# --- lines and quotes --------------------------------------------------------------------------------------


@pytest.mark.parametrize("odd", ["\u2028", "\u2029", "\x85", "\x0b", "\x0c", "\x1c", "\x1e"])
@pytest.mark.parametrize("suffix", ["tsv", "csv", "jsonl"])
def test_only_a_line_feed_ends_a_line(tmp_path, odd, suffix):
    first = f"one{odd}two"
    text = {
        "tsv": f"{HEADER}{first}\tb\t1\nc\td\t2\n",
        "csv": f"sentence1,sentence2,score\n{first},b,1\nc,d,2\n",
        "jsonl": json.dumps({"s1": first, "s2": "b", "score": 1}, ensure_ascii=odd < " ")
        + '\n{"s1": "c", "s2": "d", "score": 2}\n',
    }[suffix]
    assert load(write(tmp_path / f"a.{suffix}", text)).first == (first, "c")


@pytest.mark.parametrize("suffix", ["tsv", "csv", "jsonl"])
def test_blank_lines_at_the_end_are_the_only_ones_dropped(tmp_path, suffix):
    path = write_records(tmp_path / f"a.{suffix}", [{"s1": "a", "s2": "b", "score": 1}])
    write(path, path.read_bytes() + b"\r\n \n\n")
    assert load(path).n_pairs == 1


def test_quotes_in_tab_separated_text_are_plain_text(tmp_path):
    rows = '"open\tb\t1\n"whole"\t5" disc\t2\nc\td""\t3\n'
    pairs = load(write(tmp_path / "a.tsv", HEADER + rows))
    assert pairs.first == ('"open', '"whole"', "c")
    assert pairs.second == ("b", '5" disc', 'd""')


@pytest.mark.parametrize(
    "cells",
    [
        ['"a ""b"" c"', "d, e"],  # pandas
        ['"a, b"', "c d", '"e ""f"""'],  # spreadsheets
        ['"a"', '"b, c"', '"d ""e"""'],  # every text
        ['"a\tb"', "c, d", '"e ""f"""'],  # with a tab inside
    ],
)
@pytest.mark.parametrize("header", ["", HEADER])
def test_quotes_that_a_writer_put_round_tab_separated_cells_are_taken_off(tmp_path, cells, header):
    plain = [cell[1:-1].replace('""', '"') if cell[0] == '"' else cell for cell in cells]
    text = header + "".join(f"{cell}\tx\t1\n" for cell in cells)
    for path in (write(tmp_path / "a.tsv", text), write(tmp_path / "a.txt", text)):
        assert load(path).first == tuple(plain)
    assert open_pasted(text).pairs(0, 1, 2).first == tuple(plain)
    labelled = write(tmp_path / "l.tsv", "text\tlabel\n" + "".join(f"{cell}\t{len(cell) % 2}\n" for cell in cells * 2))
    assert load_labelled(labelled).first == tuple(plain * 2)


@pytest.mark.parametrize("cell", ['"open', '5" disc', '"a" and "b"', "one, two"])
def test_one_cell_that_no_writer_of_quotes_would_make_leaves_all_quotes(tmp_path, cell):
    assert load(write(tmp_path / "a.tsv", f'{HEADER}"yes, sir"\tx\t1\n{cell}\tx\t2\n')).first == ('"yes, sir"', cell)


def test_a_quotation_over_two_cells_is_no_cell_with_a_tab(tmp_path):
    pairs = load(write(tmp_path / "a.tsv", f'{HEADER}"yes, sir"\tx\t1\n"he said\tand left"\t2\n'))
    assert (pairs.first, pairs.second) == (('"yes, sir"', '"he said'), ("x", 'and left"'))


@pytest.mark.parametrize("blanks", [" ", "  "])
@pytest.mark.parametrize("suffix", ["csv", "txt"])
def test_quotes_may_stand_behind_a_blank(tmp_path, blanks, suffix):
    rows = ['"a, b"', '"c, ""d"""', "1"], ["e", '"f"', "2"], ["g", "h", "3"]
    pairs = load(write(tmp_path / f"a.{suffix}", "".join(f",{blanks}".join(row) + "\n" for row in rows)))
    assert (pairs.first, pairs.second) == (("a, b", "e", "g"), ('c, "d"', "f", "h"))
    text = f'a,{blanks}"b" she said,1\nc,{blanks}"d",2\n'  # where as many cannot be read so, none is
    assert load(write(tmp_path / f"a.{suffix}", text)).second == ('"b" she said', '"d"')
    with pytest.raises(MalformedRows, match=f"1 malformed row: .*a.{suffix}:1: its quotes cannot be read"):
        load(write(tmp_path / f"a.{suffix}", text + f'e,{blanks}"f",3\n' * 2))


def test_an_unclosed_quote_in_csv_swallows_no_row(tmp_path):
    rows = 's1,s2,score\n"lost,b,1\nc,d,2\n"e, f",g,3\nh,i,4\n'
    with pytest.raises(MalformedRows) as error:
        load(write(tmp_path / "a.csv", rows))
    ((line, reason),) = reasons(error)
    assert line == 2
    assert "a quote is not closed on this line" in reason
    assert load(tmp_path, keep_going=True).first == ("c", "e, f", "h")


def test_a_field_over_two_lines_is_reported_on_both_and_never_read_as_a_row(tmp_path):
    rows = 's1,s2,score\n"begun\nended, ""x"" here", b,1\nh,i,4\n'
    with pytest.raises(MalformedRows) as error:
        load(write(tmp_path / "a.csv", rows))
    assert [line for line, _ in reasons(error)] == [2, 3]
    assert load(tmp_path, keep_going=True).first == ("h",)


def test_text_after_a_closing_quote_is_reported(tmp_path):
    with pytest.raises(MalformedRows, match="a.csv:2: its quotes cannot be read"):
        load(write(tmp_path / "a.csv", 's1,s2,score\n"a" cat,b,1\nc,d,2\n'))


# --- formats -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "data",
    [b"not gzip", b"\x1f\x8b", gzip.compress(b'{"s1": "a"}\n' * 99, mtime=0)[:-9]],
    ids=["text", "magic alone", "cut short"],
)
def test_a_gz_that_is_none_is_refused(tmp_path, data):
    with pytest.raises(DataError, match="a.jsonl.gz: not a readable gzip file"):
        load(write(tmp_path / "a.jsonl.gz", data))


def test_a_gz_that_unpacks_to_too_much_is_refused(tmp_path, monkeypatch):
    path = write(tmp_path / "a.jsonl.gz", gzip.compress(b" " * 5000))
    monkeypatch.setattr(tables, "UNZIPPED_BYTES", 4999)
    with pytest.raises(DataError, match="a.jsonl.gz: unpacks to more than 4999 bytes"):
        load(path)


@pytest.mark.parametrize("delimiter", ["\t", ";", "|", ","])
def test_a_txt_table_is_sniffed(tmp_path, delimiter):
    rows = [("sentence1", "sentence2", "score"), GOOD, ("one", "two", "3")]
    write(tmp_path / "a.txt", "\n".join(delimiter.join(row) for row in rows))
    write(tmp_path / "README.txt", "Pairs, scored by hand, in 2024.\nSee the other file.\n")
    assert [info.name for info in discover(tmp_path)] == ["a"]
    assert load(tmp_path).second == ("a dog", "two")


@pytest.mark.parametrize("delimiter", [";", "\t", "|", ","])
@pytest.mark.parametrize("quote", ["", '"'])
def test_a_csv_of_texts_and_labels_is_read_with_whatever_parts_its_columns(tmp_path, delimiter, quote):
    texts = [f"the {i}th, or so" if quote or delimiter != "," else f"the {i}th; or so" for i in range(6)]
    rows = [("text", "label"), *((text, "ab"[i % 2]) for i, text in enumerate(texts))]
    lines = [delimiter.join(f"{quote}{cell}{quote}" for cell in row) for row in rows]
    data = load_labelled(write(tmp_path / "own.csv", "\n".join(lines)))
    assert (list(data.sentences), data.classes) == (texts, ("a", "b"))


@pytest.mark.parametrize("delimiter", [",", ";", "\t"])
@pytest.mark.parametrize("suffix", ["csv", "txt"])
def test_what_a_spreadsheet_writes_around_a_table_is_no_row_of_it(tmp_path, delimiter, suffix):
    rows = [delimiter.join(row) for row in (("s1", "s2", "score"), ("a", "b", "1"), ("c", "d", "x"), ("e", "f", "2"))]
    around = [f"sep={delimiter}", *rows, delimiter * 2, f" {delimiter * 2}", ""]
    path = write(tmp_path / f"own.{suffix}", "\r\n".join(around))
    with pytest.raises(MalformedRows) as error:
        load(path)
    assert reasons(error) == [(4, "score 'x' is not a number")]
    assert load(path, keep_going=True).first == ("a", "e")
    empty_between = write(tmp_path / f"gap.{suffix}", "\n".join([*rows[:2], delimiter * 2, rows[3]]))
    with pytest.raises(MalformedRows, match="sentence is empty"):
        load(empty_between)
    with pytest.raises(DataError, match="the file is empty"):
        load(write(tmp_path / f"none.{suffix}", f"sep={delimiter}\n{delimiter * 2}\n"))
    labelled = write(
        tmp_path / f"texts.{suffix}", f"sep={delimiter}\ntext{delimiter}label\na{delimiter}x\nb{delimiter}y\n"
    )
    assert load_labelled(labelled).classes == ("x", "y")


def test_a_txt_without_columns_is_refused(tmp_path):
    path = write(tmp_path / "a.txt", "just a sentence\nand another\n")
    with pytest.raises(DataError, match="no tab, semicolon, bar or comma splits its lines"):
        load(path)


def test_parquet_ignores_pandas_index_and_says_which_columns_of_lists_it_does_not_read(tmp_path):
    import pandas as pd

    frame = pd.DataFrame({"l": ["a", "b", "c"], "r": ["d", "e", "f"], "n": [1, 2, 3], "v": [[1.0], [2.0], [3.0]]})
    frame[frame.n != 2].to_parquet(tmp_path / "a.parquet")
    pairs = load(tmp_path)
    assert (pairs.first, pairs.second, pairs.gold.tolist()) == (("a", "c"), ("d", "f"), [1.0, 3.0])
    assert "columns of lists are not read with pairs: 'v'" in pairs.notes


@pytest.mark.parametrize("content", [b"PAR1 and then nothing of the kind", b"sentence1\tsentence2", b"PAR1PAR1"])
def test_a_parquet_that_is_none_is_refused(tmp_path, content):
    with pytest.raises(DataError, match="a.parquet: not a readable Parquet file"):
        load(write(tmp_path / "a.parquet", content))


def test_parquet_rows_are_checked_like_all_others(tmp_path):
    good = {"s1": "a", "s2": "b", "score": 1.0}
    records = [good, good | {"s1": None}, good | {"score": float("nan")}, good | {"s2": " "}, good]
    with pytest.raises(MalformedRows) as error:
        load(write_records(tmp_path / "a.parquet", records))
    assert reasons(error) == [
        (2, "first sentence is missing"),
        (3, "score nan is not a finite number"),
        (4, "second sentence is empty"),
    ]


def test_bad_json_lines_are_named(tmp_path):
    good = '{"s1": "a", "s2": "b", "score": "1.5"}\n'
    bad = [
        "{oops\n",
        "[1, 2]\n",
        '{"s1": "a", "s2": "b"}\n',
        '{"s1": 5, "s2": "b", "score": 1}\n',
        '{"s1": "a", "s2": "b", "score": true}\n',
        '{"s1": "a", "s2": "b", "score": NaN}\n',
        '{"s1": "\\ud800", "s2": "b", "score": 1}\n',
        "[" * 100_000 + "\n",
        f'{{"s1": "a", "s2": "b", "score": 1{"0" * 400}}}\n',
        "\n",
    ]
    path = write(tmp_path / "a.jsonl", good + "".join(bad) + good)
    with pytest.raises(MalformedRows, match=r"10 malformed rows: .*a\.jsonl:2: not a line of JSON") as error:
        load(path)
    found = dict(reasons(error))
    assert sorted(found) == list(range(2, 12))
    assert found[3] == "a JSON object is expected, got list"
    assert found[4] == "score is missing"
    assert found[5] == "first sentence is not text: 5"
    assert found[6] == "score True is not a number"
    assert found[7] == "score nan is not a finite number"
    assert "surrogate" in found[8]
    assert "JSON" in found[9]
    assert "not a finite number" in found[10]
    assert found[11] == "blank line"
    assert load(path, keep_going=True).gold.tolist() == [1.5, 1.5]


# --- encodings, sizes, odd files ---------------------------------------------------------------------------


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-32"])
def test_marked_encodings_are_read(tmp_path, encoding):
    text = "sentence1\tsentence2\tscore\r\nÄpfel \u2028 \U0001f34e\tb\t1\r\nc\td\t2\r\n"
    pairs = load(write(tmp_path / "a.tsv", text.encode(encoding)))
    assert pairs.first == ("Äpfel \u2028 \U0001f34e", "c")
    assert pairs.notes == ()


def test_big_endian_utf16_is_read_in_the_benchmark_layout(tmp_path):
    text = "\ufeff" + whiteningbert(("1", "ä", "b"), ("2", "c", "d"))
    write(tmp_path / "sts16-test.csv", text.encode("utf-16-be"))
    assert load(tmp_path, "sts16").first == ("ä", "c")


@pytest.mark.parametrize(("encoding", "kind"), [("utf-16-le", "UTF-16LE"), ("utf-16-be", "UTF-16BE")])
@pytest.mark.parametrize("name", ["a.tsv", "a.csv", "a.txt", "a.jsonl"])
@pytest.mark.parametrize("read", [load, load_labelled, load_text])
def test_utf16_without_a_mark_is_called_that(tmp_path, encoding, kind, name, read):
    path = write(tmp_path / name, (HEADER + "ä b\tb\t1\n").encode(encoding))
    with pytest.raises(DataError, match=f"UTF-16 needs a byte-order mark.*iconv -f {kind}"):
        read(path)


@pytest.mark.parametrize("mark", [b"", b"\xef\xbb\xbf"])
def test_other_encodings_are_refused_with_the_byte_and_the_advice(tmp_path, mark):
    data = mark + HEADER.encode() + "Äpfel\tb\t1\n".encode("latin-1")
    path = write(tmp_path / "a.tsv", data)
    position = data.index(b"\xc4")
    with pytest.raises(DataError, match=rf"not UTF-8 at byte {position} \(0xc4, line 2\); convert"):
        load(path)
    with pytest.raises(DataError, match="not UTF-8"):
        load(path, keep_going=True)


@pytest.mark.parametrize("encoding", ["utf-16-le", "utf-16-be", "utf-32-le"])
def test_half_a_surrogate_pair_is_no_utf_16_nor_32_and_its_line_is_counted_in_characters(tmp_path, encoding):
    data = f"\ufeff{HEADER}\u0a0a\u010a\tb\t1\nhalf \udc85\td\t2\n".encode(encoding, "surrogatepass")
    position = data.index("\udc85".encode(encoding, "surrogatepass"))
    with pytest.raises(DataError, match=rf"not {encoding.upper()} at byte {position} \(0x\w\w, line 3\)"):
        load(write(tmp_path / "a.tsv", data))


@pytest.mark.parametrize("name", ["a.csv", "a.tsv", "a.txt", "a.jsonl", "a.parquet"])
@pytest.mark.parametrize("content", [b"", b"\n\r\n  \n"])
def test_an_empty_file_is_refused(tmp_path, name, content):
    message = "not a readable Parquet" if name == "a.parquet" and content else "the file is empty"
    with pytest.raises(DataError, match=message):
        load(write(tmp_path / name, content))


@pytest.mark.parametrize(("name", "text"), [("a.tsv", HEADER), ("a.csv", "s1,s2,score\r\n")])
def test_column_names_alone_are_refused(tmp_path, name, text):
    with pytest.raises(DataError, match="column names only, no pairs"):
        load(write(tmp_path / name, text))


@pytest.mark.parametrize("name", ["a.csv", "a.tsv", "a.txt"])
def test_bare_carriage_returns_end_lines_where_there_is_no_line_feed(tmp_path, name):
    rows = [("sentence1", "sentence2", "score"), ("A man.", "Someone.", "3"), ("A dog.", "A cat.", "1")]
    for end, cell, gives in (
        ("\n", "One.", "One."),
        ("\r\n", "One.", "One."),
        ("\r", "One.", "One."),
        ("\n", "O\re.", "O\re."),
    ):
        path = tmp_path / name
        lines = [("," if name == "a.csv" else "\t").join(row) for row in [*rows, (cell, "Two.", "2")]]
        path.write_bytes("".join(line + end for line in lines).encode())
        assert load(path).first == ("A man.", "A dog.", gives)


@pytest.mark.parametrize("suffix", ["csv", "tsv", "jsonl", "parquet"])
def test_long_sentences_load_whole(tmp_path, suffix):
    long = "wörd " * 60_000  # beyond csv's own limit of 131,072 characters as well
    second = "b, c" if suffix == "csv" else "b"
    records = [{"s1": long, "s2": "b", "score": 1}, {"s1": "c", "s2": "d", "score": 2}]
    path = write_records(tmp_path / f"a.{suffix}", records)
    if suffix == "csv":
        write(path, f's1,s2,score\n"{long}","{second}",1\nc,d,2\n')
    pairs = load(path)
    assert pairs.first == (long.strip(), "c")
    assert pairs.second[0] == second


def test_between_semicolons_the_comma_stands_in_numbers_and_bars_part_a_csv_too(tmp_path):
    comma = tmp_path / "comma.csv"
    comma.write_text("satz1;satz2;wert\nDie Katze, alt, sitzt;Sie sitzt;0,45\nEin Hund;Ein Tier, 3,5 kg;-1,5\n")
    assert [row[1] for row in tables.read_table(comma).rows[1:]] == [
        ("Die Katze, alt, sitzt", "Sie sitzt", "0.45"),
        ("Ein Hund", "Ein Tier, 3,5 kg", "-1.5"),
    ]
    bars = tmp_path / "bars.csv"
    bars.write_text("a|b|score\nA man, old|Someone|4\nThe dog|A dog|3.5\n")
    assert tables.read_table(bars).rows[1][1] == ("A man, old", "Someone", "4")


@pytest.mark.parametrize(
    ("name", "head", "line", "read"),
    [
        ("tabs.tsv", "satz1\tsatz2\twert", "Er wog 3,5 kg\tSie\t{}", True),
        ("copied.txt", "satz1\tsatz2\twert", '"Er, der"\tSie\t{}', True),
        ("bars.csv", "satz1|satz2|wert", "Er, 3,5|Sie|{}", True),
        ("quoted.csv", "satz1,satz2,wert", '"Er, 3,5",Sie,"{}"', True),
        ("bare.csv", "wert,satz1,satz2,mehr", "{},Er,Sie", False),  # two numbers between commas
    ],
)
def test_the_comma_stands_in_numbers_where_none_has_a_point_and_not_all_may_be_thousands(
    tmp_path, name, head, line, read
):
    def last(*numbers):
        path = tmp_path / name
        path.write_text("\n".join([head, *(line.format(number) for number in numbers)]) + "\n")
        cells = [row[1] for row in tables.read_table(path).rows[1:]]
        return [next(one for one in row[::-1] if one[-1].isdigit()) for row in cells] if read else cells

    if not read:
        assert last("3,5", "0,2") == [("3", "5", "Er", "Sie"), ("0", "2", "Er", "Sie")]
        return
    assert last("3,5", "-0,25", "4", "1,250") == ["3.5", "-0.25", "4", "1.250"]
    assert last("0,250", "0,500") == ["0.250", "0.500"]
    assert last("0,250", "1,500", "2,750") == ["0.250", "1.500", "2.750"]
    assert last(*["2,333", "3,667", "1,167", "4"] * 9, "3,5", "2,0") == ["2.333", "3.667", "1.167", "4"] * 9 + [
        "3.5",
        "2.0",
    ]  # means of six
    assert last("2,333", "3,667", "1,167", "2,5")[0] == "2.333"
    grouped = ["1,250", "12,500", "950"] * 12 + ["12,00"]
    assert last(*grouped) == grouped
    assert last("3,5", "1,234,567", "4,5") == ["3,5", "1,234,567", "4,5"]
    assert last("3,5", "0.25") == ["3,5", "0.25"]
    assert last("1,250", "950", "2,000") == ["1,250", "950", "2,000"]


@pytest.mark.parametrize(("name", "part"), [("a.csv", ";"), ("a.tsv", "\t")])
@pytest.mark.parametrize("word", ["NA", "n/a", "?"])
def test_words_that_stand_for_no_number_make_no_column_of_numbers_one_of_texts(tmp_path, name, part, word):
    path, rows = tmp_path / name, [(f"{i % 2},5", word, word)[i % 3] for i in range(30)]
    lines = [("sentence1", "sentence2", "score"), *(("Er geht.", "Sie.", number) for number in rows)]
    path.write_text("".join(part.join(row) + "\n" for row in lines))
    assert [row[2] for _, row in tables.read_table(path).rows[1:]] == [one.replace(",", ".") for one in rows]
    assert load(path, keep_going=True).n_pairs == 10


def test_a_few_numbers_among_words_make_no_column_of_numbers(tmp_path):
    path, answers = tmp_path / "a.csv", ["ja", "nein", "ja"] * 10 + [f"{i},866" for i in range(20)]
    lines = [("sentence1", "sentence2", "score"), *((f"Frage {i}", one, "4,5") for i, one in enumerate(answers))]
    path.write_text("".join(";".join(row) + "\n" for row in lines))
    assert load(path).second == tuple(answers)


def test_one_long_row_adds_no_columns_to_be_looked_through(tmp_path):
    narrow, wide = tmp_path / "narrow.tsv", tmp_path / "wide.tsv"
    rows = "One.\tTwo.\t3\n" * 3000
    narrow.write_text(rows)
    wide.write_text(rows + "1,5\t" * 2000 + "\n")
    asked = []
    with pytest.MonkeyPatch.context() as patch:
        counted, has_commas = [], tables._has_decimal_commas
        patch.setattr(tables, "_has_decimal_commas", lambda *given: counted.append(given[1]) or has_commas(*given))
        for path in (narrow, wide):
            tables.read_table(path)
            asked.append([place for place in counted if place >= 3])
    assert asked == [[], []]


def test_each_column_says_of_itself_what_its_commas_are(tmp_path):
    path = tmp_path / "a.tsv"
    rows = [("10,5", 'Er sagte: "3,5"', "1,250", "1,2"), ("ja", "1,000", "950", "0"), ("nein", "so", "12,500", "3")]
    path.write_text("\n".join(["satz1\tsatz2\twert\tdauer", *map("\t".join, rows)]) + "\n")
    assert [cells for _, cells in tables.read_table(path).rows[1:]] == [
        ("10,5", 'Er sagte: "3,5"', "1,250", "1.2"),
        ("ja", "1,000", "950", "0"),
        ("nein", "so", "12,500", "3"),
    ]


def test_quotations_that_begin_and_end_in_quotes_are_no_cells_in_quotes(tmp_path):
    rows = ['{}; "Hi," she said. "Bye."; {}'] * 10 + ['{}; "Hello"; {}']
    path = tmp_path / "a.csv"
    path.write_text("\n".join(["s1;s2;score", *(row.format(f"a{i}", i) for i, row in enumerate(rows))]) + "\n")
    assert load(path).second == ('"Hi," she said. "Bye."',) * 10 + ('"Hello"',)


def test_a_number_with_a_comma_is_no_text_that_a_spreadsheet_would_have_quoted(tmp_path):
    path = tmp_path / "a.tsv"
    path.write_text('"s1"\t"s2"\t"score"\n"A man."\t"Sie"\t3,5\n"A dog."\t"Er"\t2,25\n')  # as R writes texts
    pairs = load(path)
    assert (pairs.first, tuple(pairs.gold)) == (("A man.", "A dog."), (3.5, 2.25))


@pytest.mark.parametrize("end", ["\r", "\r\n", "\r\n\r\n"])
def test_line_feeds_at_the_end_of_bare_carriage_returns_are_none(tmp_path, end):
    path = tmp_path / "a.csv"
    path.write_bytes(("\r".join(["s1,s2,score", "a,b,1", "c,d,2"]) + end).encode())
    assert load(path).first == ("a", "c")
    path.write_bytes("\r".join(["s1,s2,score", "a,b,1", "caf\xe9,d,2"]).encode("latin-1"))
    with pytest.raises(DataError, match="not UTF-8 at byte .* line 3"):
        load(path)


def test_a_comma_beside_points_is_named(tmp_path):
    path = tmp_path / "a.tsv"
    path.write_text("sentence1\tsentence2\tscore\nOne.\tTwo.\t0,5\nThree.\tFour.\t0.5\n")
    with pytest.raises(MalformedRows, match="score '0,5', with a comma, is not a number"):
        load(path)


def test_a_csv_with_semicolons_is_read_by_them_and_one_with_commas_never(tmp_path):
    semicolons, commas = tmp_path / "a.csv", tmp_path / "b.csv"
    semicolons.write_text("one;two;score\nA man, old, plays;Someone plays;4\nThe dog runs;A dog, running;3.5\n")
    commas.write_text('one,two,score\n"a; b; 1","c; d; 2",4\n"e; f; 3",g,3.5\n')
    assert tables.read_table(semicolons).rows[1][1] == ("A man, old, plays", "Someone plays", "4")
    assert tables.read_table(commas).rows[1][1] == ("a; b; 1", "c; d; 2", "4")
