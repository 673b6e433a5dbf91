"""Draws the screen of a terminal as an SVG picture, with its own dark background."""
from html import escape

CELL, LINE, FONT, MARGIN, BAR = 7.8, 18, 13, 14, 26  # pixels
BACKGROUND, FRAME, TEXT = "#161b22", "#57606a", "#e6edf3"
COLORS = {"default": TEXT, "red": "#ff7b72", "green": "#7ee787", "brown": "#e3b341",
          "blue": "#79c0ff", "magenta": "#d2a8ff", "cyan": "#76e3ea", "white": TEXT,
          "black": "#8b949e"}


def draw(lines, title):
    """lines: one dict for each line, from columns to characters of pyte."""
    columns = max((max(line) + 1 for line in lines if line), default=1)
    width = round(columns * CELL + 2 * MARGIN)
    height = BAR + len(lines) * LINE + 2 * MARGIN
    out = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" '
           f'height="{height}" role="img">',
           f"<title>{escape(title)}</title>",
           f'<rect x=".5" y=".5" width="{width - 1}" height="{height - 1}" rx="8" '
           f'fill="{BACKGROUND}" stroke="{FRAME}"/>',
           *(f'<circle cx="{MARGIN + 5 + 18 * i}" cy="16" r="5.5" fill="{color}"/>'
             for i, color in enumerate(("#ff5f56", "#ffbd2e", "#27c93f"))),
           f'<g font-family="ui-monospace,SFMono-Regular,Menlo,Consolas,\'DejaVu Sans Mono\','
           f'monospace" font-size="{FONT}" fill="{TEXT}" xml:space="preserve">']
    for row, line in enumerate(lines):
        y = BAR + MARGIN + row * LINE + FONT - 2
        out += (span(column, y, *run) for column, *run in runs(line))
    return "\n".join(out + ["</g>", "</svg>", ""])


def runs(line):
    """(column, text, style) for each part of a line that has one style, without spaces around it."""
    found = []
    for column in range(max(line, default=-1) + 1):
        cell = line.get(column)
        text = cell.data if cell else " "
        style = (cell.fg, cell.bold) if cell else ("default", False)
        if found and found[-1][2] == style:
            found[-1][1] += text
        else:
            found.append([column, text, style])
    return [(column + len(text) - len(text.lstrip()), text.strip(), style)
            for column, text, style in found if text.strip()]


def span(column, y, text, style):
    """The length keeps columns below each other, whichever font the reader has."""
    color, bold = style
    fill = "" if color == "default" else f' fill="{COLORS.get(color, TEXT)}"'
    weight = ' font-weight="bold"' if bold else ""
    return (f'<text x="{MARGIN + column * CELL:.1f}" y="{y}" textLength="{len(text) * CELL:.1f}" '
            f'lengthAdjust="spacingAndGlyphs"{fill}{weight}>{escape(text, quote=False)}</text>')
