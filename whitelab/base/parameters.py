"""One choice with its parameters as one string, a spec: `pca`, `soft:gamma=0.5`, `w-mse:positives=4,size=256`.

A spec travels through addresses, caches and protocols as it is. A family keeps its choices in a table; this
module checks a text against it and writes out every parameter, so that equal specs are equal strings.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache

from whitelab.base.checks import check_choice, check_is
from whitelab.base.wording import capitalised

Value = int | float | str


@dataclass(frozen=True)
class Parameter:
    """One knob of a choice: a whole number, a number or, with `choices`, a word. A number may also be one of `words`.

    `low` and `high` bound a number; `high` None stands for d plus `beyond_d`. The parameter counts only while
    the other parameter `when[0]` has one of the values `when[1:]`. With `multiple` (other, n) it is n times that
    other parameter where it is not given. Where the label is a letter, `noun` says what it stands for, else the name.
    """

    name: str
    label: str
    default: int | float | str
    low: int | float = 0
    high: int | float | None = None
    hint: str = ""
    choices: tuple[str, ...] = ()
    when: tuple[Value, ...] = ()
    beyond_d: int = 0
    multiple: tuple[str, int] | None = None
    words: tuple[str, ...] = ()
    noun: str = ""

    @property
    def title(self) -> str:
        """What stands over its knob: `γ, exponent`."""
        return capitalised(self.label) if len(self.label) > 1 else f"{self.label}, {self.noun or self.name}"

    def usual(self, values: Mapping) -> Value:
        """What this parameter is where it is not given, beside the `values` of the others."""
        return self.default if self.multiple is None else self.multiple[1] * values[self.multiple[0]]

    def counts(self, values: Mapping) -> bool:
        """Whether this parameter has an effect beside the `values` of the others."""
        return not self.when or values.get(self.when[0]) in self.when[1:]

    def check(self, value, dim: int | None = None) -> int | float | str:
        """Return `value` in this parameter's own type. Raises ValueError outside its range."""
        if self.choices:
            return check_choice(value, self.name, self.choices)
        if value in self.words:
            return value
        whole, either = isinstance(self.default, int), "".join(f" or {word}" for word in self.words)
        try:
            number = int(value) if whole else float(value)
        except (TypeError, ValueError):
            raise ValueError(f"{self.name}={value!r} must be a {'whole ' if whole else ''}number{either}") from None
        high = self.high if self.high is not None or dim is None else dim + self.beyond_d
        if not number >= self.low or (high is not None and number > high):
            upper = f"d{self.beyond_d or ''}={high}" if self.high is None and high is not None else high
            span = f"at least {self.low}" if upper is None else f"between {self.low} and {upper}"
            raise ValueError(f"{self.name}={value} must lie {span}".replace("lie at least", "be at least"))
        return number


@dataclass(frozen=True)
class Spec:
    """A name with all its parameters; `str()` is the canonical text."""

    name: str
    values: tuple[tuple[str, Value], ...] = ()
    parameters: tuple[Parameter, ...] = field(default=(), repr=False, compare=False)

    def __str__(self) -> str:
        shown = [f"{key}={_shown(value)}" for key, value in self.counting]
        return f"{self.name}:{','.join(shown)}" if shown else self.name

    @property
    def counting(self) -> tuple[tuple[str, Value], ...]:
        """The parameters that have an effect, given the others."""
        values = dict(self.values)
        counting = {one.name for one in self.parameters if one.counts(values)}
        return tuple((key, value) for key, value in self.values if key in counting)

    def label(self, title: str) -> str:
        """A readable name: `Soft whitening (γ = 0.5, α = 0)`."""
        names = {one.name: "" if one.choices else f"{one.label} = " for one in self.parameters}
        shown = [f"{names[key]}{_shown(value)}" for key, value in self.counting]
        return f"{title} ({', '.join(shown)})" if shown else title

    def short_label(self, title: str) -> str:
        """A readable name with what differs from the defaults: `W-MSE (positives = 4)`."""
        known, values = {one.name: one for one in self.parameters}, dict(self.values)
        changed = [(known[key].label, value) for key, value in self.counting if value != known[key].usual(values)]
        shown = [f"{name} = {_shown(value)}" for name, value in changed]
        return f"{title} ({', '.join(shown)})" if shown else title


def _shown(value: Value) -> str:
    return f"{value:.12g}" if isinstance(value, float) else str(value)


def family(name: str, table: Mapping) -> tuple[Callable[..., Spec], Callable[[str], str]]:
    """`parse` and `canonical` of the choices in a `table` of names to entries with `parameters`; errors call it `name`.

    Both remember what they were asked.
    """

    @lru_cache(1024)
    def parse(spec: str, dim: int | None = None) -> Spec:
        """`NAME[:param=value,...]` -> Spec; parameters not given have their defaults.

        Raises ValueError for an unknown name or parameter and for a value out of range (where the range ends at d,
        only when `dim` is given), TypeError for what is no text.
        """
        return _read(spec, name, table, dim)

    @lru_cache(1024)
    def canonical(spec: str) -> str:
        """The text of `spec` with every parameter that counts, in the table's order."""
        return str(parse(spec))

    return parse, canonical


def _read(spec: str, family: str, table: Mapping, dim: int | None) -> Spec:
    check_is(spec, family, str, repr(next(iter(table))))
    name, _, rest = spec.partition(":")
    check_choice(name or spec, family, table)
    parameters = table[name].parameters
    known = {one.name: one for one in parameters}
    given = {}
    for part in filter(None, rest.split(",")):
        key, equals, value = part.partition("=")
        if key not in known or not equals:
            takes = ", ".join(f"{key}=" for key in known) or "no parameters"
            raise ValueError(f"{family}={spec!r}: {name} takes {takes}, got {part!r}")
        if key in given:
            raise ValueError(f"{family}={spec!r} must not name {key} twice")
        given[key] = value
    try:
        values = {key: one.check(given.get(key, one.default)) for key, one in known.items()}
        usual = {key: one.usual(values) for key, one in known.items()}
        values |= {key: usual[key] for key in known if key not in given}
        # What has no effect is not held against d, and has its default, so that specs of one effect are equal.
        values = {key: one.check(values[key], dim) if one.counts(values) else usual[key] for key, one in known.items()}
    except ValueError as error:
        raise ValueError(f"{family}={spec!r}: {error}") from None
    return Spec(name, tuple(values.items()), parameters)
