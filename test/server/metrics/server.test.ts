import { once } from 'node:events'
import { request } from 'node:http'
import { setImmediate } from 'node:timers/promises'
import test from 'ava'
import { ScriptedAgent } from '../../helpers/agents/scripted-agent.ts'
import { upload } from '../../helpers/clients/files.ts'
import { followEvents } from '../../helpers/clients/follow.ts'
import { finished, running, startTask } from '../../helpers/clients/tasks.ts'
import { hasPromtool, promtool } from '../../helpers/metrics/promtool.ts'
import { scrape } from '../../helpers/metrics/scrape.ts'
import { startTestServer, type TestServer } from '../../helpers/servers/server.ts'
import { until } from '../../helpers/until.ts'

const heartbeat = (
  server: TestServer,
  { agentId, token }: { agentId: string; token: string },
  status: string,
) => server.api('POST', '/api/agent/heartbeat', { agentId, status }, { authorization: `Bearer ${token}` })

/** Sends any request line, even one that no well-behaved client sends; returns the status. */
async function send(server: TestServer, method: string, path: string): Promise<number | undefined> {
  const { hostname, port } = new URL(server.url)
  const headers = { authorization: `Bearer ${server.token}` }
  const sent = request({ hostname, port, method, path, headers, agent: false }).end()
  const [answer] = await once(sent, 'response')
  answer.resume()
  return answer.statusCode
}

test('hosts are counted by status, and agent links as they open and close', async (t) => {
  const server = await startTestServer(t)
  await server.data('POST', '/api/hosts', { hostname: 'never-heard', ip: '127.0.0.1' })
  const well = await server.enroll('well')
  const ill = await server.enroll('ill')
  await heartbeat(server, ill, 'DEGRADED')
  const agent = await ScriptedAgent.link(server, well)
  await agent.settled()
  const linked = await scrape(server)
  t.is(linked.of('rsm_hosts{status="ONLINE"}'), 1)
  t.is(linked.of('rsm_hosts{status="WARNING"}'), 1)
  t.is(linked.of('rsm_hosts{status="OFFLINE"}'), 1)
  t.is(linked.of('rsm_agent_links'), 1)
  await server.data('DELETE', `/api/hosts/${well.hostId}/agent`)
  await agent.closed
  t.is((await scrape(server)).of('rsm_agent_links'), 0)
})

test('tasks and executions are counted as they run, wait and end, together with output and disk space', async (t) => {
  const server = await startTestServer(t)
  const host = await server.enroll('web1')
  const other = await server.enroll('web2')
  const agent = await ScriptedAgent.link(server, host, { maxExecutions: 1 })
  const taskId = await startTask(server, [host.hostId])
  await agent.execution(taskId)
  const waiting = await startTask(server, [host.hostId])
  const during = await scrape(server)
  t.is(during.of('rsm_tasks{status="RUNNING"}'), 2)
  t.is(during.of('rsm_executions{status="RUNNING"}'), 1)
  t.is(during.of('rsm_queue_length{queue="executions"}'), 1)
  t.is(during.of('rsm_executions_total{result="SUCCESS"}'), 0)
  t.true(during.series.has('rsm_executions_total{result="LOST"}'))

  agent.output(taskId, 0, 'twelve bytes')
  agent.complete(taskId, 0, { lastSequence: 0 })
  await agent.execution(waiting)
  agent.complete(waiting, 3)
  await finished(server, taskId)
  await finished(server, waiting)
  await finished(server, await startTask(server, [other.hostId], { queueSeconds: 0 }))
  const after = await scrape(server)
  t.is(after.of('rsm_tasks{status="RUNNING"}'), 0)
  t.is(after.of('rsm_executions{status="RUNNING"}'), 0)
  t.is(after.of('rsm_queue_length{queue="executions"}'), 0)
  t.is(after.of('rsm_executions_total{result="SUCCESS"}'), 1)
  t.is(after.of('rsm_executions_total{result="FAILED"}'), 1)
  t.is(after.of('rsm_executions_total{result="UNREACHABLE"}'), 1)
  t.is(after.of('rsm_tasks_total{status="SUCCESS"}'), 1)
  t.is(after.of('rsm_tasks_total{status="FAILED"}'), 2)
  t.is(after.of('rsm_execution_duration_seconds_count{result="SUCCESS"}'), 1)
  t.is(after.of('rsm_execution_duration_seconds_bucket{le="0.1",result="FAILED"}'), 1)
  t.false(after.series.has('rsm_execution_duration_seconds_count{result="UNREACHABLE"}'), 'it never ran')
  t.is(after.of('rsm_output_bytes_total'), 12)
  t.is(after.of('rsm_output_fsync_seconds_count'), 1)
  t.true(after.of('rsm_output_fsync_seconds_sum') > 0)
  t.true(after.of('rsm_journal_fsync_seconds_count') > during.of('rsm_journal_fsync_seconds_count'))
  t.true(after.of('rsm_journal_fsync_seconds_sum') > 0)
})

test('verifications and rollbacks are counted by outcome, files by bytes', async (t) => {
  const server = await startTestServer(t)
  const host = await server.enroll('web1')
  const agent = await ScriptedAgent.link(server, host, { capabilities: { gates: true, files: true } })
  const gates = { verify: { script: { content: 'true' } }, rollback: { script: { content: 'true' } } }
  const good = await startTask(server, [host.hostId], gates)
  await agent.execution(good)
  agent.complete(good, 0, { verify: { status: 'SUCCESS', exitCode: 0, attempts: 2 } })
  await finished(server, good)
  const bad = await startTask(server, [host.hostId], gates)
  await agent.execution(bad)
  const verify = { status: 'TIMEOUT', exitCode: 124, attempts: 1 } as const
  agent.complete(bad, 124, { status: 'FAILED', verify, rollback: { status: 'FAILED', exitCode: 1 } })
  await finished(server, bad)
  agent.serveCopies(server, host)
  await upload(server, 'twelve bytes')
  const target = { hostIds: [host.hostId] }
  const fetch = { path: '/f', kind: 'FILE' }
  await server.data('POST', '/api/tasks', { fetch, target, async: false })
  const { of } = await scrape(server)
  t.is(of('rsm_gates_total{phase="VERIFY",result="SUCCESS"}'), 1)
  t.is(of('rsm_gates_total{phase="VERIFY",result="TIMEOUT"}'), 1)
  t.is(of('rsm_gates_total{phase="VERIFY",result="FAILED"}'), 0)
  t.is(of('rsm_gates_total{phase="ROLLBACK",result="FAILED"}'), 1)
  t.is(of('rsm_gates_total{phase="ROLLBACK",result="SUCCESS"}'), 0)
  t.is(of('rsm_file_bytes_total{direction="in"}'), 'twelve bytes'.length + 'hello\n'.length)
})

test('clients that follow an event stream are counted while connected', async (t) => {
  const server = await startTestServer(t)
  const host = await server.enroll('web1')
  const agent = await ScriptedAgent.link(server, host)
  const taskId = await startTask(server, [host.hostId])
  await running(server, taskId)
  const series = 'rsm_event_streams{route="/api/tasks/:taskId/logs"}'
  await until('the earlier stream is gone', async () => (await scrape(server)).of(series) === 0)
  const url = `${server.url}/api/tasks/${taskId}/logs?follow=true`
  let open = 0
  const seen = followEvents(url, { authorization: `Bearer ${server.token}` }, ({ event }) => event === 'end')
  await agent.execution(taskId)
  for (let turn = 0; open === 0 && turn < 1000; turn++) {
    open = (await scrape(server)).of(series)
    await setImmediate()
  }
  t.is(open, 1)
  agent.complete(taskId)
  await seen
  for (let turn = 0; open > 0 && turn < 1000; turn++) open = (await scrape(server)).of(series)
  t.is(open, 0)
  const answered = 'rsm_http_requests_total{method="GET",route="/api/tasks/:taskId/logs",status="200"}'
  t.is((await scrape(server)).of(answered), 1)
})

test('requests are counted by route template, and request data never creates a new series', async (t) => {
  const server = await startTestServer(t)
  const { hostId } = await server.enroll('web1')
  await server.data('GET', `/api/hosts/${hostId}`)
  t.is(await send(server, 'HEAD', '/api/hosts'), 200)
  t.is(await send(server, 'PUT', '/api/hosts/7'), 405)
  t.is(await send(server, 'PROPFIND', '/api/hosts/7'), 404)
  t.is(await send(server, 'GET', '/no/such/path'), 404)
  const before = await scrape(server)
  const series = (labels: string) => `rsm_http_requests_total{${labels}}`
  t.is(before.of(series('method="GET",route="/api/hosts/:id",status="200"')), 1)
  t.is(before.of(series('method="HEAD",route="/api/hosts",status="200"')), 1)
  t.is(before.of(series('method="PUT",route="/api/hosts/:id",status="405"')), 1)
  t.is(before.of(series('method="GET",route="unknown",status="404"')), 1)
  t.is(before.of(series('method="other",route="unknown",status="404"')), 1)
  const duration = 'rsm_http_request_duration_seconds'
  t.is(before.of(`${duration}_count{method="GET",route="/api/hosts/:id",status="200"}`), 1)
  t.true(before.of(`${duration}_sum{method="GET",route="/api/hosts/:id",status="200"}`) > 0)
  await scrape(server)

  const known = (await scrape(server)).series
  for (let n = 0; n < 20; n++) {
    await send(server, 'GET', `/junk/${n}`)
    await send(server, 'GET', `/junk"\\n{}=${n}?a=b`)
    await send(server, 'LOCK', `/api/hosts/${n}`)
    await send(server, 'PUT', `/api/hosts/${n}`)
    await send(server, 'GET', `/%ff${n}`)
  }
  const after = await scrape(server)
  t.deepEqual(
    [...after.series].filter((one) => one.startsWith('rsm_') && !known.has(one)),
    [],
  )
  t.true(after.of(series('method="GET",route="unknown",status="404"')) >= 41)
})

test('a scrape is Prometheus text for any user, and for everyone with --metrics-open; HEAD has its headers', async (t) => {
  const server = await startTestServer(t)
  const { headers, body } = await server.api('GET', '/metrics')
  t.is(headers.get('content-type'), 'text/plain; version=0.0.4; charset=utf-8')
  t.regex(body.data, /^rsm_build_info\{version="\d+\.\d+\.\d+"\} 1$/m)
  for (const name of ['process_cpu_seconds_total', 'process_resident_memory_bytes', 'process_open_fds'])
    t.regex(body.data, new RegExp(`^${name} \\d`, 'm'))
  t.regex(body.data, /^process_start_time_seconds \d/m)
  t.regex(body.data, /^nodejs_eventloop_lag_p99_seconds \d/m)
  t.regex(body.data, /^rsm_disk_available_bytes [1-9]/m)
  t.regex(body.data, /^rsm_store_read_only 0$/m)
  t.regex(body.data, /^rsm_audit_refused 0$/m)
  const head = await fetch(`${server.url}/metrics`, {
    method: 'HEAD',
    headers: { authorization: `Bearer ${server.token}` },
  })
  t.is(head.status, 200)
  t.is(head.headers.get('content-type'), 'text/plain; version=0.0.4; charset=utf-8')
  t.true(Number(head.headers.get('content-length')) > 1000)
  t.is((await fetch(`${server.url}/metrics`)).status, 401)
  const open = await startTestServer(t, { metricsOpen: true })
  t.is((await fetch(`${open.url}/metrics`)).status, 200)
  // Two servers in one process share no metrics.
  t.notRegex(await (await fetch(`${open.url}/metrics`)).text(), /route="\/metrics",status="401"/)
})

// Skipped if promtool is missing (Debian package prometheus).
const whereChecked = hasPromtool ? test : test.skip
whereChecked('promtool accepts a scrape of a busy server without warnings', async (t) => {
  const server = await startTestServer(t)
  const host = await server.enroll('web1')
  const agent = await ScriptedAgent.link(server, host)
  agent.serve(() => ({ output: 'some\n' }))
  await finished(server, await startTask(server, [host.hostId]))
  await scrape(server)
  t.is(promtool(['check', 'metrics'], (await scrape(server)).text), '')
})
