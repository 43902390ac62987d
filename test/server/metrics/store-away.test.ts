import { writeFile } from 'node:fs/promises'
import { join, resolve } from 'node:path'
import { temporaryDirectory } from '../../fixtures/rsm.ts'
import { startCutLink } from '../../helpers/faults/cut-link.ts'
import { ShiftedClock } from '../../helpers/faults/shifted-clock.ts'
import { hasPromtool, promtool } from '../../helpers/metrics/promtool.ts'
import { parseScrape } from '../../helpers/metrics/scrape.ts'
import { sharedPostgres, postgresTest as test } from '../../helpers/servers/postgres.ts'
import { startTestServer } from '../../helpers/servers/server.ts'
import { until } from '../../helpers/until.ts'

const started = sharedPostgres()

test('F23 during any outage of PostgreSQL a scrape with a previously valid token is answered, and RsmStoreAway fires', async (t) => {
  const postgres = await started
  const store = await postgres.database()
  const way = await startCutLink(t, `http://127.0.0.1:${postgres.port}`)
  const directory = temporaryDirectory(t)
  const clock = new ShiftedClock()
  const server = await startTestServer(t, {
    store: store.replace(`:${postgres.port}/`, `:${new URL(way.url).port}/`),
    keysDir: join(directory, 'keys'),
    serverName: 'a',
    clock,
  })
  const tokenOf = async (name: string) =>
    (await server.data('POST', '/api/tokens', { name, role: 'VIEWER', expiresInDays: 1 })).token as string
  const [scraper, unused, revoked] = [
    await tokenOf('scraper'),
    await tokenOf('unused'),
    await tokenOf('revoked'),
  ]
  const ask = (path: string, token: string) =>
    server.api('GET', path, undefined, { authorization: `Bearer ${token}` })
  /** The value as promtool reads it; `_` if the scrape has none. */
  const fault = async () => {
    const { status, body } = await ask('/metrics', scraper)
    if (status !== 200) return '_'
    const { series, of } = parseScrape(body.data)
    return series.has('rsm_store_fault') ? String(of('rsm_store_fault')) : '_'
  }
  const values = [await fault()]
  t.is((await ask('/metrics', revoked)).status, 200)
  const { content } = await server.data('GET', '/api/tokens')
  const { id } = content.find(({ name }: { name: string }) => name === 'revoked')
  await server.data('DELETE', `/api/tokens/${id}`)

  await way.close()
  await until('the server notices', async () => (await server.api('GET', '/api/ready')).status === 503)
  for (let minute = 0; minute < 20; minute++) {
    values.push(await fault())
    clock.forward(60)
  }
  t.deepEqual(values, ['0', ...Array(20).fill('1')])
  t.is((await ask('/metrics', 'rsm_pat_junk')).status, 503, 'only the store could tell')
  t.is((await ask('/metrics', 'junk')).status, 401)
  for (const [path, token] of [
    ['/metrics', unused],
    ['/metrics', revoked],
    ['/api/hosts', scraper],
    ['/api/server', scraper],
  ] as const) {
    const { status, headers } = await ask(path, token)
    t.is(status, 503, path)
    t.is(headers.get('retry-after'), '2', path)
  }
  clock.forward(86_400)
  t.is((await ask('/metrics', scraper)).status, 503, 'it has expired by then')

  if (!hasPromtool) return
  const rules = join(directory, 'rules.test.yml')
  const firing = 'sort(count by (alertname) (ALERTS{alertstate="firing"}))'
  await writeFile(
    rules,
    JSON.stringify({
      rule_files: [resolve('examples/prometheus/rsm-rules.yml')],
      evaluation_interval: '1m',
      tests: [
        {
          interval: '1m',
          input_series: [{ series: 'rsm_store_fault{instance="a"}', values: values.join(' ') }],
          promql_expr_test: [
            { expr: firing, eval_time: '1m', exp_samples: [] },
            {
              expr: firing,
              eval_time: '20m',
              exp_samples: [{ labels: '{alertname="RsmStoreAway"}', value: 1 }],
            },
          ],
        },
      ],
    }),
  )
  t.regex(promtool(['test', 'rules', rules]), /SUCCESS/)
})
