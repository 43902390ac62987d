import { readFileSync } from 'node:fs'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import test from 'ava'
import { hasPromtool, promtool } from '../../helpers/metrics/promtool.ts'
import { scrape } from '../../helpers/metrics/scrape.ts'
import { startTestServer } from '../../helpers/servers/server.ts'

const rules = resolve('examples/prometheus/rsm-rules.yml')
const config = resolve('examples/prometheus/prometheus.yml')
const operations = resolve('docs/operate/monitoring.md')
// Skipped where Prometheus' checker is missing (Debian package prometheus).
const whereChecked = hasPromtool ? test : test.skip

whereChecked('promtool accepts the example rules and scrape configuration', (t) => {
  t.regex(promtool(['check', 'rules', rules]), /6 rules found/)
  // The files of the token and of the rules are not where the example has them.
  t.regex(promtool(['check', 'config', '--syntax-only', config]), /is valid/)
})

const up = (values: string) => ({ series: 'up{job="rsm",instance="a"}', values })
const hosts = (status: string, count: number) => ({
  series: `rsm_hosts{job="rsm",instance="a",status="${status}"}`,
  values: `${count}x30`,
})
const lost = (values: string) => ({ series: 'rsm_executions_total{instance="a",result="LOST"}', values })
const fsync = (le: string, step: number) => ({
  series: `rsm_journal_fsync_seconds_bucket{job="rsm",instance="a",le="${le}"}`,
  values: `0+${step}x30`,
})
const lag = (value: number) => ({
  series: 'nodejs_eventloop_lag_p99_seconds{job="rsm",instance="a"}',
  values: `${value}x30`,
})
const readOnly = (values: string) => ({ series: 'rsm_store_read_only{instance="a"}', values })
const unaudited = (values: string) => ({ series: 'rsm_audit_refused{instance="a"}', values })

/** Series minute by minute, and the alert that fires after half an hour of them, if any. */
const cases: [string, { series: string; values: string }[], string | null][] = [
  ['a server that answers no scrape', [up('0x30')], 'RsmServerDown'],
  ['a store that refuses writes', [readOnly('1x30')], 'RsmStoreReadOnly'],
  ['an audit log that refuses entries', [unaudited('1x30')], 'RsmAuditRefused'],
  ['a tenth of the hosts OFFLINE', [hosts('OFFLINE', 10), hosts('ONLINE', 90)], 'RsmHostsOffline'],
  ['an execution lost lately', [lost('0x25 1x5')], 'RsmExecutionsLost'],
  ['a slow disk', [fsync('0.1', 10), fsync('0.25', 60), fsync('+Inf', 60)], 'RsmServerSlow'],
  ['a busy event loop', [lag(0.3)], 'RsmServerSlow'],
  [
    'a server that is well',
    [
      up('1x30'),
      readOnly('0x30'),
      unaudited('0x30'),
      hosts('OFFLINE', 1),
      hosts('ONLINE', 99),
      lost('3x30'),
      fsync('0.1', 60),
      fsync('0.25', 60),
      fsync('+Inf', 60),
      lag(0.011),
    ],
    null,
  ],
]

whereChecked('each example rule fires for its fault, and none for a server that is well', async (t) => {
  const directory = await mkdtemp(join(tmpdir(), 'rsm-rules-'))
  t.teardown(() => rm(directory, { recursive: true, force: true }))
  const tests = cases.map(([name, series, alert]) => ({
    name,
    interval: '1m',
    input_series: series,
    promql_expr_test: [
      {
        expr: 'count by (alertname) (ALERTS{alertstate="firing"})',
        eval_time: '30m',
        exp_samples: alert === null ? [] : [{ labels: `{alertname="${alert}"}`, value: 1 }],
      },
    ],
  }))
  // JSON is YAML.
  const file = join(directory, 'test.yml')
  await writeFile(file, JSON.stringify({ rule_files: [rules], evaluation_interval: '1m', tests }))
  t.regex(promtool(['test', 'rules', file]), /SUCCESS/)
})

test('the rules and docs/operate/monitoring.md name only metrics that a server has, and the docs every one of rsm', async (t) => {
  const server = await startTestServer(t)
  const { text } = await scrape(server)
  const exposed = new Set([...text.matchAll(/^# TYPE (\S+)/gm)].map(([, name]) => name ?? ''))
  const named = (file: string) =>
    [...readFileSync(file, 'utf8').matchAll(/\b(?:rsm|nodejs|process)_[a-z0-9_]+[a-z0-9]\b/g)].map(([name]) =>
      name.replace(/_(bucket|count|sum)$/, ''),
    )
  const documented = named(operations)
  for (const name of [...named(rules), ...documented])
    t.true(exposed.has(name) || name === 'nodejs_eventloop_lag', name)
  for (const name of exposed) if (name.startsWith('rsm_')) t.true(documented.includes(name), name)
})
