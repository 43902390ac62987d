import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Client } from '../../client/client.ts'
import { allPages } from '../../client/http/pages.ts'
import { RsmError } from '../../core/errors.ts'
import type { EnrollmentCreate, EnrollmentCreated } from '../../core/protocol/http/enrollments.ts'
import { isOnPath } from '../command/own-command.ts'
import { openExecutables } from './executables.ts'
import { type JoinSetting, joinHost } from './join-host.ts'
import { cancelled, type JoinOutcome } from './outcome.ts'

export interface JoinRequest extends Omit<JoinSetting, 'executableFor' | 'joinString'> {
  readonly hosts: readonly string[]
  /** Hosts in parallel. */
  readonly concurrency: number
  /** Settings of each host's token. */
  readonly enrollment: EnrollmentCreate
  /** Called with the first token. */
  readonly made: (token: EnrollmentCreated) => void
  readonly version: string
  readonly ended: (outcome: JoinOutcome) => void
  /** Current step of each host in progress. */
  readonly doing: (now: ReadonlyMap<string, string>) => void
}

interface Token {
  readonly id: number
  readonly join: string
}

/** Single-use tokens; the first is created before any host is contacted, to report missing rights at once. */
async function openTokens(client: Client, { enrollment, made }: Pick<JoinRequest, 'enrollment' | 'made'>) {
  const unused = new Set<number>()
  async function make() {
    const created = await client.enrollments.create({ ...enrollment, maxUses: 1 })
    const { id, join: text } = created
    unused.add(id)
    if (text !== null) return { created, token: { id, join: text } }
    throw new RsmError('unavailable', 'the server is too old to make join strings', {
      hint: 'upgrade the server',
    })
  }
  const first = await make()
  made(first.created)
  let spare: Token | undefined = first.token
  return {
    async next(): Promise<Token> {
      const token = spare
      spare = undefined
      return token ?? (await make()).token
    },
    /** Keeps the token of a host that did not join, because its service may still use it. */
    leave: (id: number) => unused.delete(id),
    /** Removes unused tokens: those of hosts that had already joined, and the first if no host needed it. */
    async tidy(): Promise<void> {
      const { content } = await allPages((query) => client.enrollments.list(query), {})
      for (const { id, uses } of content)
        if (unused.has(id) && uses === 0) await client.enrollments.remove(id)
    },
  }
}

type Tokens = Awaited<ReturnType<typeof openTokens>>

/** Joins hosts with limited concurrency until none are left. */
async function joinAll(
  tokens: Tokens,
  setting: Omit<JoinSetting, 'joinString' | 'signal'>,
  request: JoinRequest,
): Promise<void> {
  const { ended } = request
  const stop = new AbortController()
  const signal = AbortSignal.any([request.signal, stop.signal])
  const waiting = [...request.hosts]
  const now = new Map<string, string>()
  const killAll = () => stop.abort()
  async function join(host: string): Promise<void> {
    let token: Token | undefined
    const joinString = async () => {
      token = await tokens.next()
      return token.join
    }
    const tell = (what: string) => request.doing(now.set(host, what))
    const outcome = await joinHost(host, { ...setting, joinString, signal }, tell)
    if (token !== undefined && outcome.status !== 'JOINED') tokens.leave(token.id)
    now.delete(host)
    ended(outcome)
  }
  const work = async () => {
    for (let host = waiting.shift(); host !== undefined; host = waiting.shift())
      await (signal.aborted ? ended(cancelled(host)) : join(host))
  }
  // A second Ctrl-C ends the process immediately.
  process.on('exit', killAll)
  try {
    await Promise.all(Array.from({ length: request.concurrency }, work))
  } finally {
    // After an unexpected error, others may still be running.
    killAll()
    process.off('exit', killAll)
  }
}

/**
 * Joins hosts over the user's OpenSSH (contract §10). Before any host is contacted, throws errors that affect all: no ssh, no
 * executable to copy, no right to create tokens.
 */
export async function joinHosts(client: Client, request: JoinRequest): Promise<void> {
  if (!isOnPath('ssh', process.env['PATH'] ?? ''))
    throw new RsmError('unavailable', 'there is no ssh on the PATH', {
      hint: 'install the OpenSSH client: apt-get install openssh-client, or dnf install openssh-clients',
    })
  const directory = await mkdtemp(join(tmpdir(), 'rsm-join-'))
  try {
    const executableFor = await openExecutables(client, directory, request.version)
    const tokens = await openTokens(client, request)
    try {
      await joinAll(tokens, { ...request, executableFor }, request)
    } finally {
      // Unused tokens expire; the hosts' outcomes matter more.
      await tokens.tidy().catch(() => {})
    }
  } finally {
    await rm(directory, { recursive: true, force: true })
  }
}
