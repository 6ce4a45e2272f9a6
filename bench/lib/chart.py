"""Bar charts as SVG, readable on a light and on a dark background."""

from html import escape

WIDTH, LABEL, VALUE = 720, 170, 90
BAR, GAP, TOP = 20, 10, 44
STYLE = """
    text { font: 13px system-ui, sans-serif; fill: #1f2328 }
    .title { font-weight: 600; font-size: 15px }
    .bar { fill: #8c959f } .ours { fill: #0969da }
    @media (prefers-color-scheme: dark) { text { fill: #e6edf3 } .bar { fill: #768390 } .ours { fill: #4493f8 } }
"""


def number(value: float) -> str:
    """Returns a number with three significant digits, or with thousands separators."""
    if value >= 100:
        return f"{value:,.0f}"
    return f"{value:.3g}"


def bar_chart(title: str, bars: list) -> str:
    """Returns a chart of (name, value, is ours), drawn in the given order; the longest bar is the largest value."""
    largest = max((value for _, value, _ in bars), default=0) or 1
    height = TOP + len(bars) * (BAR + GAP)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" width="{WIDTH}" height="{height}" role="img"'
        f' aria-label="{escape(title)}">',
        f"<style>{STYLE}</style>",
        f'<text class="title" x="0" y="20">{escape(title)}</text>',
    ]
    for row, (name, value, ours) in enumerate(bars):
        y = TOP + row * (BAR + GAP)
        # At least one pixel, so that a small value is not mistaken for a missing one.
        length = max(1, (WIDTH - LABEL - VALUE) * value / largest)
        parts += [
            f'<text x="{LABEL - 10}" y="{y + 15}" text-anchor="end">{escape(name)}</text>',
            f'<rect class="{"ours" if ours else "bar"}" x="{LABEL}" y="{y}" width="{length:.1f}" height="{BAR}" rx="2"/>',
            f'<text x="{LABEL + length + 8:.1f}" y="{y + 15}">{number(value)}</text>',
        ]
    return "\n".join([*parts, "</svg>", ""])
