// Draws recorded terminal screens as an animated SVG: one strip per row, moved by CSS from content to content.

const cell = { width: 8.4, height: 18, size: 14 }
const padding = 14
const titleHeight = 26
const background = '#0d1117'
const colors = {
  text: '#d6dde6',
  30: '#484f58',
  31: '#ff7b72',
  32: '#56d364',
  33: '#e3b341',
  34: '#79c0ff',
  35: '#d2a8ff',
  36: '#56d4dd',
  37: '#d6dde6',
  90: '#8b949e',
}

const escaped = (text) => text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;')
const rounded = (number) => String(Math.round(number * 100) / 100)

/** A color of the 256-color palette of xterm. */
function paletteColor(number) {
  if (number < 16) return colors[number < 8 ? number + 30 : number === 8 ? 90 : number + 22]
  const level = (step) => (step === 0 ? 0 : 55 + 40 * step)
  const parts =
    number > 231
      ? [0, 0, 0].map(() => 8 + 10 * (number - 232))
      : [36, 6, 1].map((weight) => level(Math.floor((number - 16) / weight) % 6))
  return `#${parts.map((part) => part.toString(16).padStart(2, '0')).join('')}`
}

/** The style after an SGR sequence. */
function styled(style, sequence) {
  let next = style
  const codes = sequence.split(';').map(Number)
  for (let at = 0; at < codes.length; at++) {
    const code = codes[at]
    if (code === 0) next = {}
    else if (code === 1) next = { ...next, weight: 'bold' }
    else if (code === 7) next = { ...next, inverse: true }
    else if (code === 2) next = { ...next, fill: colors[90] }
    else if (code === 38 && codes[at + 1] === 5) {
      next = { ...next, fill: paletteColor(codes[at + 2]) }
      at += 2
    } else if (code === 39) next = { ...next, fill: undefined }
    else if ((code >= 30 && code <= 37) || code === 90) next = { ...next, fill: colors[code] }
    else if (code >= 91 && code <= 97) next = { ...next, fill: colors[code - 60] }
  }
  return next
}

/** A row as `tmux capture-pane -e` prints it, as an element at `x`. */
function drawRow(row, x, y) {
  let style = {}
  let columns = 0
  let spans = ''
  let bars = ''
  for (const [index, part] of row.trimEnd().split('\u001b[').entries()) {
    const end = index === 0 ? 0 : part.indexOf('m') + 1
    if (end > 0) style = styled(style, part.slice(0, end - 1))
    const text = part.slice(end)
    if (text === '') continue
    const width = [...text].length
    if (style.inverse)
      bars += `<rect x="${rounded(x + columns * cell.width)}" y="${y - 14}" width="${rounded(width * cell.width)}" height="${cell.height}" fill="${style.fill ?? colors.text}"/>`
    columns += width
    const color = style.inverse ? background : style.fill
    const fill = color === undefined ? '' : ` fill="${color}"`
    const weight = style.weight === undefined ? '' : ' font-weight="bold"'
    spans += fill + weight === '' ? escaped(text) : `<tspan${fill}${weight}>${escaped(text)}</tspan>`
  }
  if (spans.trim() === '' && bars === '') return ''
  // Fonts on other machines have other widths; the columns keep their positions.
  return `${bars}<text x="${rounded(x)}" y="${y}" textLength="${rounded(columns * cell.width)}">${spans}</text>`
}

/** The contents of one row with the seconds at which each began. */
function changesOf(frames, pane, row) {
  const changes = []
  for (const { at, panes } of frames) {
    const content = panes[pane][row] ?? ''
    if (changes.at(-1)?.content !== content) changes.push({ at, content })
  }
  return changes
}

/**
 * @param {{ at: number, panes: string[][] }[]} frames contents of the panes from second `at` on
 * @param {{ title: string, columns: number, rows: number }[]} panes in order from top to bottom
 * @param {number} seconds length of the animation
 */
export function drawCast(frames, panes, seconds) {
  const width = Math.max(...panes.map(({ columns }) => columns)) * cell.width + 2 * padding
  let top = 0
  let drawn = ''
  let moves = ''
  for (const [pane, { title, rows }] of panes.entries()) {
    drawn += `<rect y="${top}" width="100%" height="${titleHeight}" fill="#21262d"/>`
    drawn += `<text x="${padding}" y="${top + 18}" fill="${colors[90]}">${escaped(title)}</text>`
    for (let row = 0; row < rows; row++) {
      const changes = changesOf(frames, pane, row)
      const y = top + titleHeight + padding / 2 + (row + 1) * cell.height - 4
      const strip = changes.map(({ content }, index) => drawRow(content, padding + index * width, y)).join('')
      if (strip === '') continue
      const name = `p${pane}r${row}`
      const steps = changes.map(
        ({ at }, index) =>
          `${rounded((at / seconds) * 100)}%{transform:translateX(-${rounded(index * width)}px)}`,
      )
      moves += `@keyframes ${name}{${steps.join('')}to{transform:translateX(-${rounded((changes.length - 1) * width)}px)}}`
      drawn += `<g style="animation-name:${name}">${strip}</g>`
    }
    top += titleHeight + padding + rows * cell.height
  }
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${rounded(width)} ${top}" width="${rounded(width)}" height="${top}">
<style>text{font:${cell.size}px ui-monospace,SFMono-Regular,Menlo,Consolas,"DejaVu Sans Mono",monospace;white-space:pre}
svg{fill:${colors.text}}
g{animation:${seconds}s step-end infinite}
${moves}</style>
<rect width="100%" height="100%" rx="8" fill="${background}"/>
${drawn}
</svg>
`
}
