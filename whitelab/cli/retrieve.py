"""`retrieve`: how well a setting ranks the documents that were judged relevant."""

import argparse

from whitelab.base.wording import p_value, quantity
from whitelab.cli.options import layers_or_each, malformed_option, model_options, prompt_options, whitening_options
from whitelab.cli.spaces import open_search, setting_of_search
from whitelab.cli.writing import progress, shown_ks

FIT = (
    "corpus|queries|both|demo|PATH|corpus:FOLDER",
    "the documents, the queries, both, 'demo' (bundled), a text file, file of pairs or folder, or corpus:FOLDER, what "
    "`corpus embed` made (default: corpus)",
)


def add_options(parser: argparse.ArgumentParser) -> None:
    from whitelab.datasets import DEMO_SEARCH
    from whitelab.retrieval.embedded import DOCUMENT_TOKENS

    parser.add_argument(
        "--data",
        default=DEMO_SEARCH,
        help="a folder, or its .zip, with corpus.jsonl, queries.jsonl and qrels/test.tsv (BEIR) or TREC qrels, or "
        f"'{DEMO_SEARCH}' (bundled, the default)",
    )
    parser.add_argument("--split", help="whose judgements count, as their file is named (default: test)")
    malformed_option(parser)
    model_options(parser, str(DOCUMENT_TOKENS))
    prompt_options(parser)
    parser.add_argument(
        "--layers",
        type=layers_or_each,
        help="layers to average, such as 1,6, or each: every layer alone, raw and under the --whitening named "
        "(default: the last)",
    )
    whitening_options(parser, "none", fit=FIT, whole="mean/L1+L-1:pca@256 fit=both")
    parser.set_defaults(aggregate=None)
    parser.add_argument("--every-k", action="store_true", help="every number of kept dimensions, in one pass")
    parser.add_argument("--per-query", action="store_true", help="also list every query")


def run(args):
    from whitelab.retrieval.relevance import retrieval_curve, retrieve
    from whitelab.whitening import check_same_weights

    setting = setting_of_search(args)
    if args.every_k and (args.layers == "each" or args.per_query or setting.k is not None):
        raise ValueError("--every-k goes with one set of layers, and with neither --k nor --per-query")
    if args.every_k:
        check_same_weights(setting.whitening)
    if args.layers == "each" and args.per_query:
        raise ValueError("--per-query goes with one set of layers, not with --layers each")
    space, _ = open_search(args, setting, intervals=not args.every_k)
    if args.layers == "each":
        return _each(space, setting)
    if args.every_k:
        return _every_k(retrieval_curve(space, setting, progress("ranking", "queries")))
    results = [retrieve(space, one) for one in dict.fromkeys((setting.raw, setting))]
    return _one(space, results, args.per_query)


def _one(space, results, per_query: bool) -> tuple[dict, list[str]]:
    """The last of the results, which is held against the first, raw, where that is another."""
    from whitelab.retrieval.metrics import METRICS
    from whitelab.retrieval.relevance import against

    result = results[-1]
    standings = {name: against(results, metric=name)[-1] for name in METRICS}
    record = {"setting": str(result.setting)} | result.as_dict()
    for one in standings.values():
        record |= one.interval()
    if len(results) > 1:
        record |= {"raw": results[0].means, "against_raw": {name: one.as_dict() for name, one in standings.items()}}
    lines = [_line(METRICS[name].label, one, len(results) > 1) for name, one in standings.items()]
    if per_query:
        record["per_query"] = _queries(space, results)
        lines += ["", "query  nDCG@10" + ("  raw" if len(results) > 1 else "")]
        lines += [
            f"{one['id']:>5}  {one['ndcg@10']:7.4f}"
            + (f"  {one['raw']['ndcg@10']:.4f}" if "raw" in one else "")
            + f"  {one['text']}"
            for one in record["per_query"]
        ]
    return record, [*lines, result.line()]


def _line(label: str, standing, compared: bool) -> str:
    line = f"{label:10}  {standing.mean:.4f}  (95 %: {standing.low:.4f} to {standing.high:.4f})"
    if not compared:
        return line
    from whitelab.statistics.significance import least_p

    found = standing.difference
    p = p_value(found.p_value, least_p(standing.resamples))
    return (
        f"{line}  {found.estimate:+z.4f} against raw ({found.low:+z.4f} to {found.high:+z.4f}, {p}), "
        f"{quantity(standing.gained, 'query', 'queries')} gained, {standing.lost} lost"
    )


def _queries(space, results) -> list[dict]:
    """Every query with its metrics, and those of raw where that is another setting."""
    from whitelab.retrieval.metrics import METRICS

    data, rows = space.data, []
    for i, (name, text) in enumerate(zip(data.query_ids, data.queries, strict=True)):
        values = [dict(zip(METRICS, one.per_query[:, i].tolist(), strict=True)) for one in results]
        rows.append({"id": name, "text": text} | values[-1] | ({"raw": values[0]} if len(values) > 1 else {}))
    return rows


def _each(space, setting) -> tuple[dict, list[str]]:
    """Every layer alone, raw and under the setting."""
    from whitelab.retrieval.relevance import COUNTS, against, retrieve

    compared = setting.whitening != "none"
    records, lines = [], ["layer  nDCG@10 raw  " + ("under the setting  difference" if compared else "95 %")]
    for layer in range(space.space.n_layers):
        here = setting.with_(layers=(layer,))
        results = [retrieve(space, one) for one in dict.fromkeys((here.raw, here))]
        standing, raw = against(results)[-1], results[0].means
        record = {"layer": layer, "setting": str(here)} | results[-1].means | standing.interval()
        records.append(record | {"raw": raw, "against_raw": standing.as_dict()})
        moved = standing.difference
        found = f"{standing.low:.4f} to {standing.high:.4f}"
        if compared:
            found = f"{standing.mean:17.4f}  {moved.estimate:+.4f} ({moved.low:+.4f} to {moved.high:+.4f})"
        lines.append(f"{layer:5}  {raw['ndcg@10']:11.4f}  {found}")
    protocol = results[-1].protocol.as_dict() | {"layers": "each", "rank": "each"}
    counts = {name: protocol[name] for name in COUNTS}
    return {"rows": records} | counts | {"protocol": protocol}, lines


def _every_k(curve) -> tuple[dict, list[str]]:
    means, best = curve.means(), curve.best_k()
    lines = [f"k = {k:5}  nDCG@10 {means[k - 1]:.4f}" for k in shown_ks(curve.protocol.dim)]
    lines.append(f"best k {best} with {means[best - 1]:.4f}, within 0.005 from k = {curve.knee()}")
    return curve.as_dict(), [*lines, curve.protocol.line()]
