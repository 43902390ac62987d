import test from 'ava'
import { renderTable } from '../../../src/ui/text/table.ts'

const columns = [
  { heading: 'NAME', value: (row: { name: string; note: string }) => row.name },
  { heading: 'NOTE', value: (row: { name: string; note: string }) => row.note },
]
const rows = [
  { name: 'web1', note: 'a rather long note about this host' },
  { name: 'a-longer-name', note: 'x' },
]

test('a table has no borders and no blanks at the end of its lines', (t) => {
  t.is(
    renderTable(rows, columns),
    'NAME           NOTE\nweb1           a rather long note about this host\na-longer-name  x',
  )
})

for (const width of [1, 10, 30, 60, 200])
  test(`a table on a terminal of ${width} columns fits, or is as narrow as it gets`, (t) => {
    for (const line of renderTable(rows, columns, width).split('\n'))
      t.true(line.length <= Math.max(width, 14))
  })

test('data of hosts has no control sequences and stays in its row', (t) => {
  const text = renderTable([{ name: 'a\u001b[2Jb\nc', note: '' }], columns)
  t.is(text, 'NAME  NOTE\nab c')
})
