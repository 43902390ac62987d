import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { ExecutionContext } from 'ava'
import { systemClock as clock } from '../../../src/disk/clock.ts'
import { createLog } from '../../../src/disk/log.ts'
import { openFileStore } from '../../../src/server/storage/files/open.ts'
import { createLocalFacts } from '../../../src/server/storage/local-facts.ts'
import type { AgentLink, Member } from '../../../src/server/storage/ports/cluster.ts'
import type { TerminalsDependencies } from '../../../src/server/terminals/state.ts'
import { createTerminals, type Terminals } from '../../../src/server/terminals/terminals.ts'
import { noted } from '../agents/noted-link.ts'
import { host, terminal, token, user } from '../servers/store-records.ts'
import { createLocalRelay } from './local-relay.ts'
import { notedClient } from './noted-client.ts'

/** One of the servers of a data directory, reduced to terminals. */
export interface SiteServer {
  terminals: Terminals
  member: Member
  /** Entries for its audit log. */
  told: string[]
}

/**
 * An open data directory with the hosts web1 and web2, and a way to start servers on it. `of`: parts that a server has in place
 * of those of the data directory.
 */
export async function openSites(
  t: ExecutionContext,
  of: (member: Member) => Promise<Partial<TerminalsDependencies>> = async () => ({}),
) {
  const directory = await mkdtemp(join(tmpdir(), 'rsm-sites-'))
  const log = createLog('ERROR')
  const data = await openFileStore(directory, {
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
  const relay = createLocalRelay()
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

  async function start(name: string): Promise<SiteServer> {
    const facts = createLocalFacts()
    const told: string[] = []
    facts.subscribe('terminal', ({ kind }) => told.push(kind))
    const member = await data.ownership.join(name)
    const terminals = createTerminals({ ...data, relay, member, facts, clock, log, ...(await of(member)) })
    await terminals.recover()
    started.add(terminals)
    return { terminals, member, told }
  }

  /** Links the agent of a host, with these sessions; it opens every requested one. */
  async function link({ terminals, member }: SiteServer, hostId: number, sessions: [string, number][] = []) {
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

  const openSession = ({ terminals }: SiteServer) =>
    terminals.open({ record: terminal('s1', { startedAt: at }), caller: notedClient().caller })
  return { data, relay, start, link, openSession }
}
