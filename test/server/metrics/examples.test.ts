import { readFileSync } from 'node:fs'
import { resolve } from 'node:path'
import test from 'ava'
import { hasPromtool, promtool } from '../../helpers/metrics/promtool.ts'
import { scrape } from '../../helpers/metrics/scrape.ts'
import { startInjectedServer } from '../../helpers/servers/server.ts'

const rules = resolve('examples/prometheus/rsm-rules.yml')
const ruleTests = resolve('examples/prometheus/rsm-rules.test.yml')
const config = resolve('examples/prometheus/prometheus.yml')
const operations = resolve('docs/operate/monitoring.md')
// Skipped if promtool is missing (Debian package prometheus).
const whereChecked = hasPromtool ? test : test.skip

whereChecked('promtool accepts the example rules and scrape configuration', (t) => {
  t.regex(promtool(['check', 'rules', rules]), /15 rules found/)
  // `--syntax-only`: the files of token and rules do not exist at the paths of the example.
  t.regex(promtool(['check', 'config', '--syntax-only', config]), /is valid/)
})

whereChecked('each example rule fires for its fault, and not below its threshold', (t) => {
  t.regex(promtool(['test', 'rules', ruleTests]), /SUCCESS/)
  const alerts = [...readFileSync(rules, 'utf8').matchAll(/- alert: (\w+)/g)].map(([, name = '']) => name)
  const cases = readFileSync(ruleTests, 'utf8').split('- name: ').slice(1)
  t.true(alerts.length > 0)
  for (const name of alerts) {
    const own = cases.filter((each) => each.startsWith(`${name} `))
    t.true(own.length > 0, name)
    for (const each of own) {
      t.true(each.includes(`alertname="${name}"`), `${name} fires`)
      t.true(each.includes('exp_samples: []'), `${name} does not fire`)
    }
  }
})

test('rules and docs/operate/monitoring.md name only existing metrics, and the docs name every rsm metric', async (t) => {
  const server = await startInjectedServer(t)
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
