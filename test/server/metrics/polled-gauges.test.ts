import test from 'ava'
import { Registry } from 'prom-client'
import { polledGauges } from '../../../src/server/metrics/gauges.ts'
import { parseScrape } from '../../helpers/metrics/scrape.ts'

test('a scrape omits a gauge that does not answer, and shows the others', async (t) => {
  const registry = new Registry()
  const { gauge, gauges } = polledGauges(registry, 1)
  const never = () => new Promise<never>(() => undefined)
  gauge('silent', 'x', never)
  gauges('silent_by', 'x', 'label', never)
  gauge('known', 'x', () => 1)
  const { series } = parseScrape(await registry.metrics())
  t.deepEqual([...series], ['known'])
})
