import { readFileSync } from 'node:fs'
import { copyFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import test from 'ava'
import { temporaryDirectory } from '../../fixtures/rsm.ts'
import { ScriptedAgent } from '../../helpers/agents/scripted-agent.ts'
import { finished, startTask } from '../../helpers/clients/tasks.ts'
import { hasPrometheus, startPrometheus } from '../../helpers/metrics/prometheus.ts'
import { startTestServer, type TestServer } from '../../helpers/servers/server.ts'
import { until } from '../../helpers/until.ts'

interface Panel {
  title: string
  targets: { expr: string }[]
}
const { panels } = JSON.parse(readFileSync('examples/grafana/rsm.json', 'utf8')) as { panels: Panel[] }
const expressions = panels.flatMap(({ title, targets }) => targets.map(({ expr }) => [title, expr] as const))

/** Metrics that only a server with --store has. */
const ofSeveral = /\brsm_(?:lease|store_fault|store_connections|store_waiting|hint_lag)/
const ofEach = expressions.filter(([, expression]) => !ofSeveral.test(expression))

/** An example of each event that the dashboard shows. */
async function work(server: TestServer, hostId: number): Promise<void> {
  await finished(server, await startTask(server, [hostId]))
  await server.api('POST', '/api/auth/login', { username: 'nobody', password: 'not the password' })
}

/** The example configuration of Prometheus, for this server and with short intervals. */
async function configure(directory: string, server: TestServer): Promise<string> {
  const { host } = new URL(server.url)
  const token = join(directory, 'rsm.token')
  const example = readFileSync('examples/prometheus/prometheus.yml', 'utf8')
  const replaced = [
    [/scrape_interval: 15s/, 'scrape_interval: 1s'],
    [/scheme: https/, 'scheme: http'],
    ['/etc/prometheus/rsm.token', token],
    ['rsm.example.org:443', host],
  ].reduce((text, [from = '', to = '']) => text.replace(from, String(to)), example)
  await writeFile(token, server.token)
  await copyFile('examples/prometheus/rsm-rules.yml', join(directory, 'rsm-rules.yml'))
  const file = join(directory, 'prometheus.yml')
  await writeFile(file, `global: { evaluation_interval: 1s }\n${replaced}`)
  return file
}

// Skipped if Prometheus is missing (Debian package prometheus).
const whereThere = hasPrometheus ? test : test.skip
whereThere(
  'a Prometheus with the example configuration answers each query of the dashboard for one server and evaluates each rule',
  async (t) => {
    const server = await startTestServer(t)
    const host = await server.enroll('web1')
    const agent = await ScriptedAgent.link(server, host)
    agent.serve(() => ({ output: 'some\n' }))
    // A series has no rate before its second increment.
    await work(server, host.hostId)
    const prometheus = await startPrometheus(t, await configure(temporaryDirectory(t), server))
    const { host: instance } = new URL(server.url)
    const asked = (expression: string) =>
      prometheus.query(expression.replaceAll('$instance', instance).replaceAll('$__rate_interval', '1m'))
    await until('two scrapes', async () => {
      const [first] = await prometheus.query('min(count_over_time(rsm_executions_total[1m]))')
      return Number(first?.value[1]) >= 2
    })
    await work(server, host.hostId)
    await until('each query has a result', async () => {
      const answers = await Promise.all(
        ofEach.map(async ([title, expression]) => [title, (await asked(expression)).length] as const),
      )
      const empty = answers.filter(([, series]) => series === 0)
      if (empty.length > 0) t.log(empty)
      return empty.length === 0
    })
    t.true(ofEach.length > 25 && ofEach.length < expressions.length)

    await until('the executions are counted', async () => {
      const sum =
        'sum(increase(rsm_executions_total{instance="$instance", result="SUCCESS"}[$__rate_interval]))'
      const [executions] = await asked(sum)
      return Number(executions?.value[1]) > 0
    })
    await until('each rule is evaluated', async () =>
      (await prometheus.rules()).every(({ health }) => health !== 'unknown'),
    )
    const rules = await prometheus.rules()
    t.is(rules.length, 15)
    t.deepEqual(
      rules.filter(({ health }) => health !== 'ok'),
      [],
    )
    await t.throwsAsync(asked('rate(rsm_hosts)'), { message: /expected type range vector/ })
  },
)
