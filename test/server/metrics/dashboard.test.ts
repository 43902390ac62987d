import { readFileSync } from 'node:fs'
import test from 'ava'
import { scrape } from '../../helpers/metrics/scrape.ts'
import { startInjectedServer } from '../../helpers/servers/server.ts'

interface Panel {
  title: string
  gridPos: { x: number; y: number; w: number; h: number }
  targets: { refId: string; expr: string }[]
}
const { panels } = JSON.parse(readFileSync('examples/grafana/rsm.json', 'utf8')) as { panels: Panel[] }
const expressions = panels.flatMap(({ title, targets }) => targets.map(({ expr }) => [title, expr] as const))

const metricsIn = (text: string) =>
  [...text.matchAll(/\b(?:rsm|nodejs|process)_[a-z0-9_]+\b/g)].map(([name]) =>
    name.replace(/_(bucket|count|sum)$/, ''),
  )

test('the dashboard uses only metrics that a server exposes', async (t) => {
  const { text } = await scrape(await startInjectedServer(t))
  const exposed = new Set([...text.matchAll(/^# TYPE (\S+)/gm)].map(([, name]) => name))
  const named = metricsIn(expressions.map(([, expression]) => expression).join('\n'))
  t.true(named.length > 25, String(named.length))
  t.deepEqual(
    named.filter((name) => !exposed.has(name)),
    [],
  )
})

test('panels of the dashboard do not overlap', (t) => {
  const cells = panels.flatMap(({ gridPos: { x, y, w, h } }) =>
    Array.from({ length: w * h }, (_, at) => `${x + (at % w)} ${y + Math.floor(at / w)}`),
  )
  t.is(new Set(cells).size, cells.length)
})
