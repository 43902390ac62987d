import { stripVTControlCharacters } from 'node:util'
import test from 'ava'
import { toneOf } from '../../../src/cli/text/screen.ts'
import { type Column, columnsThatFit, renderFields, renderTable } from '../../../src/cli/text/table.ts'
import { showShortTime, timeColumn } from '../../../src/cli/text/time.ts'
import { widthOf } from '../../../src/cli/text/width.ts'

const columns: Column<{ name: string; note: string }>[] = [
  { heading: 'NAME', value: (row) => row.name },
  { heading: 'NOTE', value: (row) => row.note },
]
const rows = [
  { name: 'web1', note: 'a rather long note about this host' },
  { name: 'a-longer-name', note: 'x' },
]

test('a table has no borders and no trailing blanks', (t) => {
  t.is(
    renderTable(rows, columns),
    'NAME           NOTE\nweb1           a rather long note about this host\na-longer-name  x',
  )
})

for (const width of [1, 10, 30, 60, 200])
  test(`a table on a terminal of ${width} columns fits, or has its smallest width`, (t) => {
    for (const line of renderTable(rows, columns, width).split('\n'))
      t.true(line.length <= Math.max(width, 14))
  })

test('a table without room first shortens columns, then omits spare columns, and only then cuts text', (t) => {
  const task = { id: '01JNZ8Q3V5', script: 'systemctl restart nginx', by: 'admin', at: '2026-11-21 16:40:57' }
  const all: Column<typeof task>[] = [
    { heading: 'TASK', value: ({ id }) => id, essential: true },
    { heading: 'SCRIPT', value: ({ script }) => script },
    { heading: 'BY', value: ({ by }) => by, spare: true },
    { heading: 'CREATED', value: ({ at }) => at, short: ({ at }) => at.slice(11) },
  ]
  const line = (width: number) => renderTable([task], all, width).split('\n')[1]
  t.is(line(63), '01JNZ8Q3V5  systemctl restart nginx  admin  2026-11-21 16:40:57')
  t.is(line(62), '01JNZ8Q3V5  systemctl restart nginx  admin  16:40:57')
  t.is(line(51), '01JNZ8Q3V5  systemctl restart nginx  16:40:57')
  t.is(line(40), '01JNZ8Q3V5  systemctl restart…  16:40:57')
  t.deepEqual(
    [undefined, 52, 51, 1].map((width) => columnsThatFit([task], all, 2, width)),
    [4, 4, 3, 2],
  )
})

test('a long text in the last column is cut to 40 columns before other columns are shortened', (t) => {
  const entry = { at: '2026-11-21 16:40:57', what: `echo ${'x'.repeat(60)}` }
  const all: Column<typeof entry>[] = [
    { heading: 'TIME', value: ({ at }) => at, short: ({ at }) => at.slice(11), essential: true },
    { heading: 'WHAT', value: ({ what }) => what },
  ]
  const line = (width: number) => renderTable([entry], all, width).split('\n')[1]
  t.is(line(61), `2026-11-21 16:40:57  echo ${'x'.repeat(34)}…`)
  t.is(line(60), `16:40:57  echo ${'x'.repeat(44)}…`)
})

test('wrapped text is complete and below its heading, in any writing system', (t) => {
  const wrapped: Column<{ name: string; note: string }>[] = [
    { heading: 'NAME', value: (row) => row.name, essential: true },
    { heading: 'NOTE', value: (row) => row.note, wrap: true },
  ]
  const two = [
    { name: 'web1', note: 'agent gone 接続が切れた for 30 s' },
    { name: 'web2', note: 'x' },
  ]
  t.is(
    renderTable(two, wrapped, 22),
    'NAME  NOTE\nweb1  agent gone\n      接続が切れた for\n      30 s\nweb2  x',
  )
  t.is(renderTable(two, wrapped, 80), 'NAME  NOTE\nweb1  agent gone 接続が切れた for 30 s\nweb2  x')
})

test('a terminal too narrow for all columns omits the last ones, so that no row wraps', (t) => {
  const host = {
    id: 1,
    name: 'web1',
    status: 'ONLINE',
    ip: '192.0.2.1',
    tags: 'role=web',
    why: 'disk is full',
  }
  const all: Column<typeof host>[] = [
    { heading: 'ID', value: ({ id }) => id, essential: true },
    { heading: 'HOSTNAME', value: ({ name }) => name, essential: true },
    { heading: 'STATUS', value: ({ status }) => status, essential: true },
    { heading: 'IP', value: ({ ip }) => ip },
    { heading: 'TAGS', value: ({ tags }) => tags },
    { heading: 'REASON', value: ({ why }) => why },
  ]
  for (const width of [20, 30, 40, 50])
    for (const line of renderTable([host], all, width).split('\n')) t.true(widthOf(line) <= width, line)
  t.is(renderTable([host], all, 40).split('\n')[0], 'ID  HOSTNAME  STATUS  IP        TAGS')
})

test('a short time is a time of day, a number of days or a date, in at most 10 characters', (t) => {
  const now = new Date('2026-11-21T03:00:00Z')
  const cases: [string | null, string][] = [
    ['2026-11-21T02:40:57.000Z', '02:40:57'],
    ['2026-11-20T23:59:59.000Z', '1d ago'],
    ['2026-08-14T01:00:00.000Z', '99d ago'],
    ['2026-08-13T23:00:00.000Z', '2026-08-13'],
    ['2026-11-22T00:00:00.000Z', '2026-11-22'],
    [null, '-'],
  ]
  for (const [iso, shown] of cases) t.is(showShortTime(iso, true, now), shown)
})

test('a time is shown whole, shortened or not at all, and never cut', (t) => {
  const row = { name: 'a-long-name-of-a-thing', at: new Date().toISOString() }
  const all: Column<typeof row>[] = [
    { heading: 'NAME', value: ({ name }) => name, essential: true },
    timeColumn('CREATED', ({ at }) => at, true),
    timeColumn(
      'ENDS',
      () => null,
      true,
      () => 'never',
    ),
  ]
  const line = (width: number) => renderTable([row], all, width).split('\n')[1] ?? ''
  const time = row.at.slice(11, 19)
  t.is(line(51), `${row.name}  ${row.at.slice(0, 10)} ${time}Z  never`)
  t.is(line(50), `${row.name}  ${time}  never`)
  t.is(line(38), `${row.name}  ${time}`)
  t.is(line(31), row.name)
})

test('data of hosts loses its control sequences and stays in its row', (t) => {
  const text = renderTable([{ name: 'a\u001b[2Jb\nc', note: '' }], columns)
  t.is(text, 'NAME  NOTE\nab c')
})

test('columns stay aligned with wide, joined and combining characters, which are never split', (t) => {
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

test('on a narrow terminal, the columns that identify rows are shortened last', (t) => {
  const kept: Column<(typeof rows)[number]>[] = [
    { heading: 'NAME', value: (row) => row.name, essential: true },
    ...columns.slice(1),
  ]
  const line = renderTable(rows, kept, 24).split('\n')
  t.regex(line[2] ?? '', /^a-longer-name {2}x$/)
  t.is(widthOf(line[1] ?? ''), 24)
})

test('the fields of a record wrap between words on a terminal, and a longer word stays whole', (t) => {
  const fields = { limits: 'none (it can limit memory, processes, cpu)', id: 'a'.repeat(50) }
  const lines = ['limits  none (it can limit memory,', '        processes, cpu)', `id      ${'a'.repeat(50)}`]
  t.is(renderFields(fields, [], 40), lines.join('\n'))
})

// Serial: changes the terminal of all tests in this process.
test.serial('A16 states have colours, only on a terminal with colours', (t) => {
  const states = ['FAILED', 'OFFLINE', 'WARNING', 'SUCCESS', 'RUNNING', '漢字'].map((state) => ({ state }))
  const table = () =>
    renderTable(states, [
      { heading: 'STATE', value: (row) => row.state, tone: (row) => toneOf(row.state) },
      { heading: 'X', value: () => 'x' },
    ])
  const plain = table()
  const { isTTY } = process.stdout
  const { NO_COLOR } = process.env
  t.teardown(() => {
    process.stdout.isTTY = isTTY
    if (NO_COLOR !== undefined) process.env['NO_COLOR'] = NO_COLOR
  })
  process.stdout.isTTY = true
  process.env['NO_COLOR'] = '1'
  t.is(table(), plain)
  delete process.env['NO_COLOR']
  const coloured = table()
  for (const [state, code] of [
    ['FAILED', 31],
    ['OFFLINE', 31],
    ['WARNING', 33],
    ['SUCCESS', 32],
  ] as const)
    t.true(coloured.includes(`\u001b[${code}m${state}\u001b[39m`), state)
  t.is(stripVTControlCharacters(coloured), plain, 'the columns stay aligned')
})

test('A16 an id is shortened to its end before a column is omitted or a time cut', (t) => {
  const task = { id: '01M7ZEF5G74K5B44GT1WC0PYME', at: '08:15:30' }
  const both: Column<typeof task>[] = [
    { heading: 'TASK', value: ({ id }) => id, essential: true, shortest: ({ id }) => id.slice(-6) },
    { heading: 'AT', value: ({ at }) => at },
  ]
  t.is(renderTable([task], both, 40), 'TASK                        AT\n01M7ZEF5G74K5B44GT1WC0PYME  08:15:30')
  t.is(renderTable([task], both, 30), 'TASK    AT\nC0PYME  08:15:30')
})
