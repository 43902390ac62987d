import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import test, { type ExecutionContext } from 'ava'
import { systemClock as clock } from '../../../src/server/clock.ts'
import { openEmbedded } from '../../../src/server/embedded/open.ts'
import type { AgentLink } from '../../../src/server/engine/agent-link.ts'
import { createLocalFacts } from '../../../src/server/local-facts.ts'
import { createLog } from '../../../src/server/log.ts'
import type { Member } from '../../../src/server/seams/ownership.ts'
import { createTerminals, type Terminals } from '../../../src/server/terminals/terminals.ts'
import { noted } from '../../helpers/agents/noted-link.ts'
import { host, terminal, token, user } from '../../helpers/servers/store-records.ts'
import { notedClient } from '../../helpers/terminals/noted-client.ts'
import { until } from '../../helpers/until.ts'

/** One of the servers of a data directory, as far as it has terminals. */
interface Server {
  terminals: Terminals
  member: Member
  /** What it tells its audit log. */
  told: string[]
}

/** An opened data directory with the hosts web1 and web2, and a way to start servers on it. */
async function site(t: ExecutionContext) {
  const directory = await mkdtemp(join(tmpdir(), 'rsm-sites-'))
  const log = createLog('ERROR')
  const data = await openEmbedded(directory, {
    heartbeatInterval: 30,
    metrics: { journalSynced: () => undefined, outputSynced: () => undefined },
    keysDirectory: join(directory, 'keys'),
    newKeys: false,
    clock,
    log,
    onFatal(error) {
      throw error
    },
  })
  const started = new Set<Terminals>()
  t.teardown(async () => {
    for (const terminals of started) await terminals.stop()
    await data.close()
    await rm(directory, { recursive: true, force: true })
  })
  const at = new Date().toISOString()
  const agent = { agentVersion: '1', registeredAt: at, tokenUsed: true, enrollmentId: null }
  await data.store.transact((tx) => {
    for (const id of [1, 2])
      tx.put(
        'hosts',
        host(id, `web${id}`, { agent: { ...agent, agentId: `agent-${id}`, tokenHash: `x${id}` } }),
      )
    tx.put('users', { ...user(1, 'admin'), role: 'ADMIN', enabled: true })
    const expiresAt = new Date(Date.now() + 3600_000).toISOString()
    tx.put('tokens', { ...token(1, 1), role: 'ADMIN', lastUsedAt: at, expiresAt })
  })

  async function start(name: string): Promise<Server> {
    const facts = createLocalFacts()
    const told: string[] = []
    facts.subscribe('terminal', ({ kind }) => told.push(kind))
    const member = await data.ownership.join(name)
    const terminals = createTerminals({ ...data, member, facts, clock, log })
    await terminals.recover()
    started.add(terminals)
    return { terminals, member, told }
  }

  /** Links the agent of a host, with these sessions; it opens whatever it is asked to. */
  async function link({ terminals, member }: Server, hostId: number, sessions: [string, number][] = []) {
    const frames: { type: string; payload: Record<string, unknown> }[] = []
    const base = noted(hostId).link
    const claimed = await data.links.claim(hostId, { server: member, agentId: base.agentId }, () =>
      terminals.unlinked(agentLink),
    )
    const agentLink: AgentLink = {
      ...base,
      ...(claimed && { claim: claimed.claim }),
      hello: base.hello && {
        ...base.hello,
        capabilities: { ...base.hello.capabilities, terminal: true },
        terminals: sessions.map(([sessionId, lastSequence]) => ({ sessionId, lastSequence })),
      },
      send(type, payload, written) {
        frames.push({ type, payload })
        written?.()
        const sessionId = String((payload as { sessionId?: string }).sessionId)
        if (type === 'TERMINAL_OPEN') setImmediate(() => void terminals.opened(agentLink, 'f', { sessionId }))
        return true
      },
    }
    terminals.linked(agentLink)
    const sent = (type: string) => frames.filter((frame) => frame.type === type).map(({ payload }) => payload)
    const output = (sequence: number, data: string) =>
      terminals.output(agentLink, 'f', { sessionId: 's1', sequence, data })
    return { link: agentLink, sent, output }
  }

  const openSession = ({ terminals }: Server) =>
    terminals.open({ record: terminal('s1', { startedAt: at }), caller: notedClient().caller })
  return { data, start, link, openSession }
}

const attach = { after: null, watch: false }

test('a client of one server reaches the agent that is linked to another', async (t) => {
  const { data, start, link, openSession } = await site(t)
  const [a, b] = [await start('a'), await start('b')]
  const agent = await link(b, 1)
  await openSession(a)
  const there = await a.terminals.site('s1')
  await there.expect('s1', null)
  const { client, heard } = notedClient()
  const attachment = there.attach('s1', client, attach)
  attachment.input('ls\r', 'f1')
  attachment.resize(100, 40)
  await agent.output(0, 'web1$ ')
  t.deepEqual(heard, ['TERMINAL_ATTACHED', 'output 0 "web1$ "'])
  t.deepEqual(
    [agent.sent('TERMINAL_INPUT')[0]?.['data'], agent.sent('TERMINAL_RESIZE')[0]?.['cols']],
    ['ls\r', 100],
  )
  attachment.acknowledge(0)
  await until('the agent may go on', () => agent.sent('TERMINAL_ACK').length > 0)
  const { record } = await there.live(terminal('s1'))
  t.is(record.cols, 100)
  await there.end('s1', 'ended by admin')
  t.is(agent.sent('TERMINAL_CLOSE').length, 1)
  t.like(await data.store.get('terminals', 's1'), { status: 'CLOSED', reason: 'ended by admin' })
  t.deepEqual([a.told, b.told], [[], ['attached', 'ended']], 'who has the session tells of it')
})

test('a session of an agent that is linked here is reached by a direct call', async (t) => {
  const { data, start, link, openSession } = await site(t)
  const [a, b] = [await start('a'), await start('b')]
  await link(b, 1)
  await openSession(b)
  t.is<unknown, unknown>(await b.terminals.site('s1'), await data.relay.at(b.member))
  t.is<unknown, unknown>(await a.terminals.site('s1'), await data.relay.at(b.member))
})

test('P42 a session moves with its agent to another server, and its client misses nothing', async (t) => {
  const { start, link, openSession } = await site(t)
  const [a, b] = [await start('a'), await start('b')]
  const former = await link(a, 1)
  await openSession(b)
  const first = notedClient()
  const attachment = (await b.terminals.site('s1')).attach('s1', first.client, attach)
  await former.output(0, 'one ')
  attachment.acknowledge(0)
  await former.output(1, 'two ')

  const agent = await link(b, 1, [['s1', 2]])
  await until('the agent is asked to go on', () => agent.sent('TERMINAL_OPEN').length === 1)
  t.is(agent.sent('TERMINAL_OPEN')[0]?.['after'], 1)
  t.is(first.heard.at(-1), 'closed 1001 the session goes on at another server')
  await agent.output(2, 'three')
  t.is(await a.terminals.site('s1'), await b.terminals.site('s1'))
  t.deepEqual([a.terminals.load().open, b.terminals.load().open], [0, 1])
  const second = notedClient()
  const back = (await a.terminals.site('s1')).attach('s1', second.client, { after: 0, watch: false })
  back.input('x', 'f2')
  t.deepEqual(second.heard, ['TERMINAL_ATTACHED', 'output 1 "two "', 'output 2 "three"'])
  await until('what is typed goes over the new link', () => agent.sent('TERMINAL_INPUT').length === 1)
  t.deepEqual([former.sent('TERMINAL_CLOSE').length, agent.sent('TERMINAL_CLOSE').length], [0, 0])
})

test('an agent takes no session of another host along', async (t) => {
  const { start, link, openSession } = await site(t)
  const [a, b] = [await start('a'), await start('b')]
  await link(a, 1)
  await openSession(a)
  const other = await link(b, 2, [['s1', 0]])
  await until('it is told to end it', () => other.sent('TERMINAL_CLOSE').length === 1)
  t.deepEqual([a.terminals.load().open, b.terminals.load().open], [1, 0])
})

test('a server that starts leaves the sessions of others alone', async (t) => {
  const { start, link, openSession } = await site(t)
  const b = await start('b')
  await link(b, 1)
  await openSession(b)
  const a = await start('a')
  t.deepEqual([a.terminals.load().open, b.terminals.load().open], [0, 1])
  await b.terminals.stop()
  const again = await start('b')
  t.is(again.terminals.load().open, 1, 'and takes up its own')
})
