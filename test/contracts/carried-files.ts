import type { ExecutionContext, TestFn } from 'ava'
import { ScriptedAgent } from '../helpers/agents/scripted-agent.ts'
import { agentReads, sendBytes, upload } from '../helpers/clients/files.ts'
import { followEvents } from '../helpers/clients/follow.ts'
import { finished, task } from '../helpers/clients/tasks.ts'
import type { TestServer } from '../helpers/servers/server.ts'

const size = 300_000

/** Progress that a running task reports of file transfers (contract §13). */
export function carriedFilesContract(
  test: TestFn,
  name: string,
  open: (t: ExecutionContext) => Promise<TestServer>,
): void {
  async function fleet(t: ExecutionContext) {
    const server = await open(t)
    const hosts = []
    for (const hostname of ['web1', 'web2']) {
      const identity = await server.enroll(hostname)
      const agent = await ScriptedAgent.link(server, identity, { capabilities: { files: true } })
      hosts.push({ identity, agent })
    }
    const [web1, web2] = hosts
    if (!web1 || !web2) throw new Error('there are two')
    return { server, web1, web2, target: { hostIds: hosts.map(({ identity }) => identity.hostId) } }
  }

  test(`${name}, a copy reports bytes transferred to readers and followers; a host that needs none is not counted`, async (t) => {
    const { server, web1, web2, target } = await fleet(t)
    const { fileId } = await upload(server, Buffer.alloc(size, 7))
    const copy = { fileId, path: '/srv/f', kind: 'FILE' }
    const { taskId } = await server.data('POST', '/api/tasks', { copy, target })
    await Promise.all([web1, web2].map(({ agent }) => agent.next('COPY_FILE')))
    t.like((await task(server, taskId)).transfer, { bytes: 0, total: 2 * size })
    const tellsOf = async (fits: (task: any) => boolean) => {
      const url = `${server.url}/api/tasks/${taskId}/logs?follow=true`
      const headers = { authorization: `Bearer ${server.token}` }
      const seen = await followEvents(url, headers, ({ event, data }) => event === 'task' && fits(data))
      return seen.at(-1)?.data.transfer
    }
    const told = tellsOf(({ transfer }) => transfer.bytes === 200_000)
    await agentReads(server, web1.identity, fileId, 'bytes=0-199999')
    t.like(await told, { bytes: 200_000, total: 2 * size })
    const carried = await followEvents(
      `${server.url}/api/tasks/${taskId}/logs?follow=true`,
      { authorization: `Bearer ${server.token}` },
      ({ event }) => event === 'carried',
    )
    t.deepEqual(carried.at(-1)?.data, { hosts: [{ hostId: web1.identity.hostId, bytes: 200_000 }] })
    web2.agent.complete(taskId, 0, { changed: false, lastSequence: -1 })
    const without = await tellsOf(({ counts }) => counts.SUCCESS === 1)
    t.like(without, { bytes: 200_000, total: size })
    // As after a cut: repeated bytes are not counted twice.
    await agentReads(server, web1.identity, fileId, 'bytes=100000-')
    t.like((await task(server, taskId)).transfer, { bytes: size, total: size })
    web1.agent.complete(taskId, 0, { changed: true, lastSequence: -1 })
    t.is((await finished(server, taskId)).transfer, null)
  })

  test(`${name}, a fetch reports how many bytes have arrived, with a total of null`, async (t) => {
    const { server, web1, web2, target } = await fleet(t)
    const { taskId } = await server.data('POST', '/api/tasks', {
      fetch: { path: '/var/log/app.log', kind: 'FILE' },
      target,
    })
    for (const { agent, identity } of [web1, web2]) {
      await agent.next('FETCH_FILE')
      const agentsOwn = { url: server.url, token: identity.token }
      await sendBytes(agentsOwn, 'PUT', `/api/agent/tasks/${taskId}/file?offset=0`, Buffer.alloc(size))
    }
    t.like((await task(server, taskId)).transfer, { bytes: 2 * size, total: null })
  })
}
