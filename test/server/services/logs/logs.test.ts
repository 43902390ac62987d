import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import test, { type ExecutionContext } from 'ava'
import { ScriptedAgent } from '../../../helpers/agents/scripted-agent.ts'
import { followEvents, textOf } from '../../../helpers/clients/follow.ts'
import { finished, startTask } from '../../../helpers/clients/tasks.ts'
import { startTestServer } from '../../../helpers/servers/server.ts'

async function started(t: ExecutionContext, names = ['web1']) {
  const server = await startTestServer(t)
  const identities = []
  for (const name of names) identities.push(await server.enroll(name))
  const agents = await Promise.all(identities.map((identity) => ScriptedAgent.link(server, identity)))
  const hostIds = identities.map(({ hostId }) => hostId)
  const taskId = await startTask(server, hostIds)
  await Promise.all(agents.map((agent) => agent.execution(taskId)))
  const url = `${server.url}/api/tasks/${taskId}/logs?follow=true`
  const headers = { authorization: `Bearer ${server.token}` }
  return { server, agents, hostIds, taskId, url, headers }
}

test('a stream begins with the task, contains output and host changes, and ends with the final task', async (t) => {
  const { agents, taskId, url, headers } = await started(t)
  const following = followEvents(url, headers)
  agents[0]?.output(taskId, 0, 'ä\n\ndata: no field\r\n:no comment')
  agents[0]?.output(taskId, 1, 'err', 'stderr')
  agents[0]?.complete(taskId, 2, { lastSequence: 1 })
  const events = await following
  t.is(events[0]?.event, 'task')
  t.is(events[0]?.data.counts.RUNNING, 1)
  t.is(events.at(-1)?.event, 'end')
  t.is(events.at(-1)?.data.status, 'FAILED')
  t.is(events.at(-1)?.data.results[0].exitCode, 2)
  const output = events.filter(({ event }) => event === 'output')
  t.deepEqual(
    output.map(({ data }) => [data.sequence, data.stream, data.hostname, data.data]),
    [
      [0, 'stdout', 'web1', 'ä\n\ndata: no field\r\n:no comment'],
      [1, 'stderr', 'web1', 'err'],
    ],
  )
  t.true(output.every(({ id, data }) => Number(id) === data.id))
  t.true(events.some(({ event, data }) => event === 'host' && data.status === 'FAILED'))
  t.true(events.filter(({ event }) => event !== 'output').every(({ id }) => id === null))
})

test('a client that reconnects with Last-Event-ID or after gets exactly the rest', async (t) => {
  const { agents, taskId, url, headers } = await started(t)
  for (let n = 0; n < 20; n++) agents[0]?.output(taskId, n, `${n};`)
  agents[0]?.complete(taskId, 0, { lastSequence: 19 })
  const all = (await followEvents(url, headers)).filter(({ event }) => event === 'output')
  for (const at of [0, 7, 18, 19]) {
    const id = all[at]?.id ?? ''
    const expected = textOf(all.slice(at + 1))
    t.is(textOf(await followEvents(url, { ...headers, 'last-event-id': id })), expected)
    t.is(textOf(await followEvents(`${url}&after=${id}`, headers)), expected)
    t.is(textOf(await followEvents(`${url}&after=0`, { ...headers, 'last-event-id': id })), expected)
  }
  t.is(textOf(await followEvents(`${url}&tail=3`, headers)), '17;18;19;')
  t.is(textOf(await followEvents(`${url}&tail=0`, headers)), '')
  t.is(textOf(await followEvents(url, { ...headers, 'last-event-id': 'junk' })), textOf(all))
})

test('hostId and stream filter a followed log', async (t) => {
  const { agents, hostIds, taskId, url, headers } = await started(t, ['a', 'b'])
  for (const [index, agent] of agents.entries()) {
    agent.output(taskId, 0, `out${index};`)
    agent.output(taskId, 1, `err${index};`, 'stderr')
    agent.complete(taskId, 0, { lastSequence: 1 })
  }
  t.is(textOf(await followEvents(`${url}&hostId=${hostIds[1]}`, headers)), 'out1;err1;')
  t.is(textOf(await followEvents(`${url}&hostId=${hostIds[1]}&stream=stderr`, headers)), 'err1;')
  const errors = await followEvents(`${url}&stream=stderr`, headers)
  t.is(textOf(errors).length, 'err0;err1;'.length)
  t.is(textOf(await followEvents(`${url}&hostId=999`, headers)), '')
})

test('F15 a follower that does not read slows neither the task nor other followers', async (t) => {
  const { server, agents, taskId, url, headers } = await started(t)
  const stuck: Socket[] = []
  for (let n = 0; n < 3; n++) {
    const socket = connect(Number(new URL(server.url).port), '127.0.0.1')
    socket.pause()
    socket.write(
      `GET /api/tasks/${taskId}/logs?follow=true HTTP/1.1\r\nhost: x\r\nauthorization: ${headers.authorization}\r\n\r\n`,
    )
    stuck.push(socket)
  }
  t.teardown(() => {
    for (const socket of stuck) socket.destroy()
  })
  const following = followEvents(url, headers)
  const chunk = 'x'.repeat(64 * 1024)
  for (let n = 0; n < 120; n++) agents[0]?.output(taskId, n, chunk)
  agents[0]?.complete(taskId, 0, { lastSequence: 119 })
  await finished(server, taskId)
  t.is(textOf(await following).length, 120 * chunk.length)
  for (const socket of stuck) {
    socket.destroy()
    await once(socket, 'close')
  }
})

test('50 followers all get everything', async (t) => {
  const { agents, taskId, url, headers } = await started(t)
  const following = Array.from({ length: 50 }, () => followEvents(url, headers))
  let whole = ''
  for (let n = 0; n < 100; n++) {
    whole += `${n};`
    agents[0]?.output(taskId, n, `${n};`)
  }
  agents[0]?.complete(taskId, 0, { lastSequence: 99 })
  for (const events of await Promise.all(following)) {
    t.is(textOf(events), whole)
    t.is(events.at(-1)?.event, 'end')
  }
})

test('a log without follow is returned in pages, or as plain text of one host', async (t) => {
  const { server, agents, hostIds, taskId, headers } = await started(t, ['a', 'b'])
  for (let n = 0; n < 7; n++) agents[0]?.output(taskId, n, `${n};`)
  agents[1]?.output(taskId, 0, 'other;')
  for (const [index, agent] of agents.entries())
    agent.complete(taskId, 0, { lastSequence: index === 0 ? 6 : 0 })
  await finished(server, taskId)
  const path = `/api/tasks/${taskId}/logs`
  let text = ''
  let after = 0
  for (let page = 0; page < 10; page++) {
    const { entries, next } = await server.data('GET', `${path}?hostId=${hostIds[0]}&size=3&after=${after}`)
    t.true(entries.length <= 3)
    text += entries.map(({ data }: { data: string }) => data).join('')
    if (entries.length === 0) break
    after = next
  }
  t.is(text, '0;1;2;3;4;5;6;')
  t.is((await server.data('GET', `${path}?tail=2&hostId=${hostIds[0]}`)).entries[0].data, '5;')
  const plain = await fetch(`${server.url}${path}?hostId=${hostIds[0]}`, {
    headers: { ...headers, accept: 'text/plain' },
  })
  t.is(plain.headers.get('content-type'), 'text/plain; charset=utf-8')
  t.is(await plain.text(), '0;1;2;3;4;5;6;')
  const several = await fetch(`${server.url}${path}`, { headers: { ...headers, accept: 'text/plain' } })
  t.is(several.status, 400)
  for (const query of [
    'size=501',
    'size=0',
    'after=-1',
    'tail=-1',
    'stream=stdin',
    'follow=maybe',
    'hostId=x',
  ])
    t.is((await server.api('GET', `${path}?${query}`)).status, 400, query)
})
