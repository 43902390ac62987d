import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { createServer, type IncomingMessage, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { Duplex } from 'node:stream'
import { systemClock } from '../../../src/disk/clock.ts'
import { createLog, type Log } from '../../../src/disk/log.ts'
import { refuseUpgrade } from '../../../src/server/http/answers.ts'
import { createKeys, newSigningKey } from '../../../src/server/storage/keys.ts'
import { createLocalHints } from '../../../src/server/storage/local-hints.ts'
import {
  type Member,
  type Peer,
  renewEvery,
  type Shared,
  type TerminalSite,
} from '../../../src/server/storage/ports/cluster.ts'
import { createStoreClock } from '../../../src/server/storage/postgres/clock.ts'
import { openOwnership } from '../../../src/server/storage/postgres/ownership/ownership.ts'
import { ServerRelay } from '../../../src/server/terminals/relay/relay.ts'
import { openDatabase } from './open-database.ts'

/** Shared by all servers of a test. */
const sharedKeyFiles = [randomBytes(32), newSigningKey()] as const
export const sharedKeys = createKeys(...sharedKeyFiles)
/** For other processes. */
export const sharedKeysAsText = sharedKeyFiles.map((bytes) => bytes.toString('base64')).join(' ')

type Ending = { teardown: (end: () => Promise<void>) => void }
type SharedPeers = Pick<Shared, 'peers' | 'neighbours' | 'listensAt'>

/** The servers of a store, in memory. */
export function memoryPeers() {
  const living = new Map<number, Peer>()
  const listeners = new Set<() => void>()
  let epochs = 0
  const lose = ({ epoch }: Member) => {
    living.delete(epoch)
    for (const listener of listeners) listener()
  }
  const of = (member: Member): SharedPeers => ({
    async listensAt(_, endpoint) {
      if (endpoint === null) living.delete(member.epoch)
      else living.set(member.epoch, { ...member, endpoint })
    },
    peers: async () => [...living.values()],
    neighbours: {
      others: () => new Set([...living.keys()].filter((epoch) => epoch !== member.epoch)),
      changed(listener) {
        listeners.add(listener)
        return () => void listeners.delete(listener)
      },
    },
  })
  return { living, of, lose, member: (name: string): Member => ({ name, epoch: ++epochs }) }
}

interface Listening {
  /** Plain HTTP by default. */
  server?: Server
  /** Pin of its certificate. */
  pin?: string | null
  keys?: typeof sharedKeys
  /** Maps its URL to the one announced to other servers. */
  through?: (url: string) => Promise<string>
}

/** A relay of a server, which is listening; closed with the test. `faults`: the errors that it logs. */
export async function listeningRelay(
  t: Ending,
  member: Member,
  shared: SharedPeers,
  { server = createServer(), pin = null, keys = sharedKeys, through = async (url) => url }: Listening = {},
) {
  const faults: string[] = []
  const error: Log['error'] = (_: unknown, message?: string) => void faults.push(message ?? '')
  const log: Log = { ...createLog('ERROR'), error }
  const relay = new ServerRelay({ member, shared, keys, clock: systemClock, log })
  server.on('upgrade', (request: IncomingMessage, socket: Duplex, head: Buffer) => {
    socket.on('error', () => socket.destroy())
    try {
      relay.accept(request, socket, head)
    } catch (fault) {
      refuseUpgrade(socket, fault)
    }
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  const url = `http${'setSecureContext' in server ? 's' : ''}://127.0.0.1:${port}`
  t.teardown(async () => {
    relay.close()
    server.close()
  })
  const endpoint = { url: await through(url), pin }
  await relay.listensAt(endpoint)
  /** Resolves when other servers can know the site. */
  async function serve(site: TerminalSite): Promise<void> {
    relay.serve(member, site)
    await relay.listensAt(endpoint)
  }
  return { relay, member, url, faults, serve }
}

/** The same for a server in PostgreSQL. */
export async function sharedRelay(t: Ending, url: string, name: string, keys = sharedKeys) {
  const database = openDatabase(t, url, name)
  const log = createLog('ERROR')
  const clock = await createStoreClock(database, systemClock)
  const ownership = await openOwnership({ database, hints: createLocalHints(), clock, log, version: '1' })
  t.teardown(() => ownership.close())
  const member = await ownership.join(name)
  const renewing = setInterval(() => void ownership.renew(member).catch(() => undefined), renewEvery)
  t.teardown(async () => clearInterval(renewing))
  const { neighbours } = ownership
  return { database, neighbours, ...(await listeningRelay(t, member, ownership, { keys })) }
}
