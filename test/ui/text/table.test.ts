import test from 'ava'
import { type Column, renderFields, renderTable } from '../../../src/ui/text/table.ts'
import { widthOf } from '../../../src/ui/text/width.ts'

const columns: Column<{ name: string; note: string }>[] = [
  { heading: 'NAME', value: (row) => row.name },
  { heading: 'NOTE', value: (row) => row.note },
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

test('wide, joined and combining characters keep the columns straight, and are never cut in two', (t) => {
  const names = [
    'web1',
    '数据库服务器',
    '👩‍👩‍👧‍👦 team',
    'cafe\u0301',
    'नमस्ते',
    '한국어',
    '🇩🇪',
    '\u200b',
    'a\u202eb',
  ]
  for (const width of [undefined, 12]) {
    const lines = renderTable(
      names.map((name) => ({ name, note: 'note' })),
      columns,
      width,
    ).split('\n')
    const before = lines.map((line) => widthOf(line.slice(0, line.search(/note|NOTE/i))))
    t.is(new Set(before).size, 1, lines.join('\n'))
    t.false(lines.join('').includes('\u202e'))
  }
  const cut = renderTable(
    [{ name: '数据库服务器', note: '👩‍👩‍👧‍👦👩‍👩‍👧‍👦👩‍👩‍👧‍👦👩‍👩‍👧‍👦' }],
    columns,
    15,
  ).split('\n')
  t.true(cut.every((line) => widthOf(line) <= 15 && !/\ufffd|\u200d.?$/u.test(line)))
})

test('on a narrow terminal the columns that tell the rows apart give way last', (t) => {
  const kept: Column<(typeof rows)[number]>[] = [
    { heading: 'NAME', value: (row) => row.name, keep: true },
    ...columns.slice(1),
  ]
  const line = renderTable(rows, kept, 24).split('\n')
  t.regex(line[2] ?? '', /^a-longer-name {2}x$/)
  t.is(widthOf(line[1] ?? ''), 24)
})

test('the fields of a record are wrapped at their words on a terminal, and a longer word stays whole', (t) => {
  const fields = { limits: 'none (it can limit memory, processes, cpu)', id: 'a'.repeat(50) }
  const lines = ['limits  none (it can limit memory,', '        processes, cpu)', `id      ${'a'.repeat(50)}`]
  t.is(renderFields(fields, [], 40), lines.join('\n'))
})
