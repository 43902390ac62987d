import test from 'ava'
import { parseCron, unknownZone, type Zone, zoneOf } from '../../../src/core/schedules/cron.ts'

const zone = (name: string) => zoneOf(name) as Zone

/** The slots of a night, in UTC. */
function slotsOf(expression: string, zoneName: string, from: string, to: string): string[] {
  const cron = parseCron(expression, zone(zoneName))
  if ('fault' in cron) throw new Error(cron.fault)
  const found: string[] = []
  for (let at = cron.next(Date.parse(from) - 1); at !== null && at < Date.parse(to); at = cron.next(at))
    found.push(new Date(at).toISOString().slice(11, 16))
  return found
}

const minutes = (hour: string) =>
  Array.from({ length: 60 }, (_, minute) => `${hour}:${String(minute).padStart(2, '0')}`)

/**
 * Contract §14. From 23:30 of the evening before to 05:00 local time: in Berlin 02:00 becomes 03:00 at 01:00 UTC on 2027-03-28, and
 * 03:00 becomes 02:00 at 01:00 UTC on 2027-10-31; in New York 02:00 becomes 03:00 at 07:00 UTC on 2027-03-14, and 02:00
 * becomes 01:00 at 06:00 UTC on 2027-11-07.
 */
const nights: Record<string, { spring: [string, string]; autumn: [string, string] }> = {
  'Europe/Berlin': {
    spring: ['2027-03-27T22:30:00Z', '2027-03-28T03:00:00Z'],
    autumn: ['2027-10-30T21:30:00Z', '2027-10-31T04:00:00Z'],
  },
  'America/New_York': {
    spring: ['2027-03-14T04:30:00Z', '2027-03-14T09:00:00Z'],
    autumn: ['2027-11-07T03:30:00Z', '2027-11-07T10:00:00Z'],
  },
}

interface Night {
  expression: string
  zone: string
  why: string
  spring: string[]
  autumn: string[]
}

const table: Night[] = [
  {
    expression: '30 2 * * *',
    zone: 'Europe/Berlin',
    why: 'a skipped time runs at the first moment after it; a repeated time runs once, the first time',
    spring: ['01:00'],
    autumn: ['00:30'],
  },
  {
    expression: '0,30 2,3 * * *',
    zone: 'Europe/Berlin',
    why: 'two skipped times and one at that moment are one slot',
    spring: ['01:00', '01:30'],
    autumn: ['00:00', '00:30', '02:00', '02:30'],
  },
  {
    expression: '* 2 * * *',
    zone: 'Europe/Berlin',
    why: 'a named hour decides, whatever the minutes are',
    spring: ['01:00'],
    autumn: minutes('00'),
  },
  {
    expression: '0 3 * * *',
    zone: 'Europe/Berlin',
    why: 'a time that is neither skipped nor repeated',
    spring: ['01:00'],
    autumn: ['02:00'],
  },
  {
    expression: '*/20 1-3 * * *',
    zone: 'Europe/Berlin',
    why: 'a range names hours too',
    spring: ['00:00', '00:20', '00:40', '01:00', '01:20', '01:40'],
    autumn: ['23:00', '23:20', '23:40', '00:00', '00:20', '00:40', '02:00', '02:20', '02:40'],
  },
  {
    expression: '30 * * * *',
    zone: 'Europe/Berlin',
    why: 'with * the slots are always an hour apart',
    spring: ['22:30', '23:30', '00:30', '01:30', '02:30'],
    autumn: ['21:30', '22:30', '23:30', '00:30', '01:30', '02:30', '03:30'],
  },
  {
    expression: '0 */2 * * *',
    zone: 'Europe/Berlin',
    why: 'with */2 each moment is matched separately: 02:00 does not occur, or occurs twice',
    spring: ['23:00', '02:00'],
    autumn: ['22:00', '00:00', '01:00', '03:00'],
  },
  {
    expression: '30 2 * * *',
    zone: 'America/New_York',
    why: 'a time skipped in spring; in autumn 01:30 is repeated',
    spring: ['07:00'],
    autumn: ['07:30'],
  },
  {
    expression: '30 1 * * *',
    zone: 'America/New_York',
    why: 'a time repeated in autumn',
    spring: ['06:30'],
    autumn: ['05:30'],
  },
  {
    expression: '0,45 1-2 * * *',
    zone: 'America/New_York',
    why: 'a list in a range',
    spring: ['06:00', '06:45', '07:00'],
    autumn: ['05:00', '05:45', '07:00', '07:45'],
  },
  {
    expression: '15 * * * *',
    zone: 'America/New_York',
    why: 'elapsed time',
    spring: ['05:15', '06:15', '07:15', '08:15'],
    autumn: ['04:15', '05:15', '06:15', '07:15', '08:15', '09:15'],
  },
  {
    expression: '0 */2 * * *',
    zone: 'America/New_York',
    why: 'each moment is matched separately',
    spring: ['05:00', '08:00'],
    autumn: ['04:00', '07:00', '09:00'],
  },
]

for (const { expression, zone: name, why, spring, autumn } of table)
  test(`cron ${expression} in nights when the clocks of ${name} change: ${why}`, (t) => {
    const night = nights[name] as (typeof nights)[string]
    t.deepEqual(slotsOf(expression, name, ...night.spring), spring)
    t.deepEqual(slotsOf(expression, name, ...night.autumn), autumn)
  })

const day = ['2026-11-22T00:00:00Z', '2026-12-31T00:00:00Z'] as const
const dates = (expression: string) => {
  const cron = parseCron(expression, zone('UTC'))
  if ('fault' in cron) throw new Error(cron.fault)
  const found: string[] = []
  for (let at = cron.next(Date.parse(day[0])); at !== null && at < Date.parse(day[1]); at = cron.next(at))
    found.push(new Date(at).toISOString().slice(5, 16))
  return found
}

test('cron accepts names, ranges, steps, lists, L and nicknames', (t) => {
  t.deepEqual(dates('0 0 L * *'), ['11-30T00:00'])
  t.deepEqual(dates('0 5 * DEC mon-Wed/2'), [
    '12-02T05:00',
    '12-07T05:00',
    '12-09T05:00',
    '12-14T05:00',
    '12-16T05:00',
    '12-21T05:00',
    '12-23T05:00',
    '12-28T05:00',
    '12-30T05:00',
  ])
  t.deepEqual(dates('0 0 * * 5L'), ['11-27T00:00', '12-25T00:00'])
  t.deepEqual(dates('0 12 1,15 * *'), ['12-01T12:00', '12-15T12:00'])
  t.deepEqual(dates('0 0 * * 7'), dates('0 0 * * 0'))
  t.deepEqual(dates(' 0  0 1 * * '), dates('@monthly'))
  t.deepEqual(dates('@HOURLY'), dates('0 * * * *'))
  t.deepEqual(dates('0 0 29 2 *'), [])
})

const names = 'jan feb mar apr may jun jul aug sep oct nov dec sun mon tue wed thu fri sat'.split(' ')

/** Values of a field by the rules of cronie. */
function valuesOf(field: string, least: number, most: number): Set<number> {
  const value = (text: string) => {
    const at = names.indexOf(text.toLowerCase())
    return at === -1 ? Number(text) : at < 12 ? at + 1 : at - 12
  }
  const values = new Set<number>()
  for (const entry of field.split(',')) {
    const [range = '', step = '1'] = entry.split('/')
    const [from = '', to = from] = range === '*' ? [String(least), String(most)] : range.split('-')
    for (let at = value(from); at <= value(to); at += Number(step)) values.add(at)
  }
  return values
}

/** Whether a local time matches by the rule of cronie: a day field that begins with `*` counts as a star. */
function cronieRule(expression: string): (wall: number) => boolean {
  const fields = expression.split(' ')
  const [minute, hour, date, month, weekday] = [
    [0, 59],
    [0, 23],
    [1, 31],
    [1, 12],
    [0, 7],
  ].map(([least, most], at) => valuesOf(fields[at] as string, least as number, most as number)) as [
    Set<number>,
    Set<number>,
    Set<number>,
    Set<number>,
    Set<number>,
  ]
  const isStar = [fields[2], fields[4]].some((field) => field?.startsWith('*'))
  return (wall) => {
    const time = new Date(wall)
    const onDate = date.has(time.getUTCDate())
    const onWeekday = weekday.has(time.getUTCDay()) || (time.getUTCDay() === 0 && weekday.has(7))
    return (
      minute.has(time.getUTCMinutes()) &&
      hour.has(time.getUTCHours()) &&
      month.has(time.getUTCMonth() + 1) &&
      (isStar ? onDate && onWeekday : onDate || onWeekday)
    )
  }
}

const dayFields = [
  '*/2 * 1',
  '*/1 * 1',
  '15 * */3',
  '15 * */1',
  '*/2 * */2',
  '*/1 * */1',
  '1-31 * 1',
  '1,* * 1',
  '*,1 * 1',
  '13 * *,5',
  '13 * 5,*',
  '13 * fri',
  '1-7 * MON',
  '*/10,3 * 1-5',
  '* * 1-5/2',
  '*/7 jan,mar-dec */6',
  '*/15 * 0,7',
  '1,15 * *',
  '* * *',
]

test('days match as in cronie at every minute: both fields if one begins with *, otherwise either', (t) => {
  const spans = {
    UTC: ['2026-11-20T00:00:00Z', '2027-01-20T00:00:00Z'],
    'Europe/Berlin': ['2027-03-21T00:00:00Z', '2027-04-03T00:00:00Z'],
    'America/New_York': ['2027-10-30T00:00:00Z', '2027-11-13T00:00:00Z'],
  }
  for (const [name, span] of Object.entries(spans)) {
    const local = zone(name)
    const [from, to] = span.map((time) => Date.parse(time)) as [number, number]
    const minutesOf = (first: number, end: number) =>
      Array.from({ length: (end - first) / 60_000 }, (_, minute) => first + minute * 60_000)
    const instants = minutesOf(from, to).map((at) => [at, local.wallAt(at)] as const)
    const walls = minutesOf(local.wallAt(from), local.wallAt(to))
    for (const days of dayFields)
      for (const times of ['0,30 0-3', '20 */1']) {
        const expression = `${times} ${days}`
        const matches = cronieRule(expression)
        const wanted =
          times === '20 */1'
            ? instants.filter(([, wall]) => matches(wall)).map(([at]) => at)
            : new Set(walls.filter(matches).map((wall) => local.firstAt(wall)))
        const cron = parseCron(expression, local)
        if ('fault' in cron) throw new Error(cron.fault)
        const found: number[] = []
        for (let at = cron.next(from - 1); at !== null && at < to; at = cron.next(at)) found.push(at)
        t.deepEqual(found, [...wanted], `${expression} in ${name}`)
      }
  }
})

test('cron refuses invalid expressions, and names the field', (t) => {
  const bad: Record<string, RegExp> = {
    '* * * * * *': /^takes five fields \(minute, hour, day of the month, month, day of the week\), not 6$/,
    '': /^takes five fields .* not 1$/,
    nonsense: /not 1$/,
    '61 * * * *': /minute: 61/,
    '* 24 * * *': /hour: 24/,
    '0 0 0 * *': /^its day of the month 0 has the invalid entry 0$/,
    '0 0 * 13 *': /^its month 13 has/,
    '0 0 * * 8': /dayOfWeek: 8/,
    '*/0 * * * *': /stepping/,
    '0 0 1,, * *': /^its day of the month 1,, has an empty entry/,
    '5-1 * * * *': /5-1/,
    '0 0 ? * *': /^its day of the month \? has the invalid entry \?$/,
    '0 0 15W * *': /15W/,
    '0 0 * * 5#2': /5#2/,
    'a b c d e': /^its minute a has the invalid entry a/,
    '@reboot': /^@reboot is unknown; @hourly, @daily/,
    '@hourli': /^@hourli is unknown; did you mean @hourly\?$/,
  }
  for (const [expression, wanted] of Object.entries(bad)) {
    const parsed = parseCron(expression, zone('UTC'))
    t.regex('fault' in parsed ? parsed.fault : 'taken', wanted, expression)
  }
})

test('cron finds no slot for dates that do not occur in eight years: 30 February, 31 April', (t) => {
  const now = Date.parse('2026-11-23T00:00:00Z')
  for (const expression of ['0 0 30 2 *', '0 * 30 2 *', '0 0 31 4,6 *', '*/5 */2 31 11 *']) {
    const cron = parseCron(expression, zone('Europe/Berlin'))
    t.is('fault' in cron ? cron.fault : cron.next(now), null, expression)
  }
  const leap = parseCron('0 0 29 2 *', zone('UTC'))
  t.is('fault' in leap ? leap.fault : leap.next(now), Date.parse('2028-02-29T00:00:00Z'))
})

test('a time zone has an IANA name; the error for another name suggests the nearest', (t) => {
  for (const name of ['Europe/Berlin', 'UTC', 'America/Argentina/Buenos_Aires', 'Etc/GMT+5'])
    t.is(zoneOf(name)?.name, name)
  for (const name of ['+02:00', 'Mars/Base', '', 'Europe/Berlin\0', '../etc']) t.is(zoneOf(name), null)
  t.is(unknownZone('Europe/Berln'), 'unknown time zone Europe/Berln (did you mean Europe/Berlin?)')
  t.is(unknownZone('berlin'), 'unknown time zone berlin (did you mean Europe/Berlin?)')
  t.is(unknownZone('Berln'), 'unknown time zone Berln (did you mean Europe/Berlin?)')
  t.is(unknownZone('Nowhere/Quite'), 'unknown time zone Nowhere/Quite: use one like Europe/Berlin, or UTC')
})
