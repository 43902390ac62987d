import {
  createHash,
  createHmac,
  createPrivateKey,
  createPublicKey,
  generateKeyPairSync,
  hkdfSync,
  type KeyObject,
  randomBytes,
  sign,
  timingSafeEqual,
} from 'node:crypto'
import { mkdir, readFile, rename } from 'node:fs/promises'
import { join } from 'node:path'
import { RsmError } from '../../core/errors.ts'
import type { RunMark } from '../../core/protocol/messages.ts'
import { signedBytes } from '../../core/protocol/orders.ts'
import { open, seal } from '../../core/sealing.ts'
import { isMissing, isRefusedByFullDisk, writeFileDurably } from '../../disk/durable.ts'
import type { Keys, ReplacedKeys } from './ports/keys.ts'
import type { Store, Transaction } from './ports/store.ts'
import type { KeyRecord } from './records/run.ts'
import { bury } from './tombstones.ts'

/** Lifetime of a signature, in milliseconds of the server's clock (contract §6). */
export const signatureLife = 5 * 60_000

export const sealKeyBytes = 32

function idOf(bytes: Buffer | string): string {
  return createHash('sha256').update(bytes).digest('hex').slice(0, 16)
}

/** Identifies a sealing key without revealing it; null if the bytes are not one. */
function sealKeyId(bytes: Buffer): string | null {
  return bytes.length === sealKeyBytes ? idOf(Buffer.concat([Buffer.from('rsm sealing key\0'), bytes])) : null
}

export function newSigningKey(): Buffer {
  return Buffer.from(generateKeyPairSync('ed25519').privateKey.export({ format: 'pem', type: 'pkcs8' }))
}

function publicBytes(privateKey: KeyObject): Buffer {
  return createPublicKey(privateKey).export({ format: 'der', type: 'spki' }).subarray(-32)
}

/** Secret 32 bytes of an Ed25519 key. */
function seedOf(privateKey: KeyObject): Buffer {
  return privateKey.export({ format: 'der', type: 'pkcs8' }).subarray(-32)
}

/** Id by which agents know a signing key; null if the bytes are not one. */
function signingKeyId(pem: Buffer): string | null {
  try {
    const key = createPrivateKey(pem)
    return key.asymmetricKeyType === 'ed25519' ? idOf(publicBytes(key)) : null
  } catch {
    return null
  }
}

export function createKeys(sealKey: Buffer, signingKey: Buffer): Keys {
  const privateKey = createPrivateKey(signingKey)
  const publicKey = publicBytes(privateKey)
  const keyId = idOf(publicKey)
  const markKey = Buffer.from(hkdfSync('sha256', seedOf(privateKey), '', 'rsm-mark-1', 32))
  const macOf = (agentId: string, { run, sequence }: RunMark) =>
    createHmac('sha256', markKey)
      .update(JSON.stringify([agentId, run, sequence]))
      .digest('base64url')
  return {
    serverKey: publicKey.toString('base64'),
    keyId,
    sign(type, agentId, payload, expiry) {
      const full = { ...payload, expiry, keyId }
      const signature = sign(null, signedBytes(type, agentId, full), privateKey).toString('base64')
      return { ...full, signature }
    },
    authenticated: (agentId, { run, sequence }) => ({
      run,
      sequence,
      mac: macOf(agentId, { run, sequence }),
    }),
    isAuthentic(agentId, { mac = '', ...mark }) {
      const [given, own] = [Buffer.from(mac), Buffer.from(macOf(agentId, mark))]
      return given.length === own.length && timingSafeEqual(given, own)
    },
    seal: (plain, context) => seal(plain, sealKey, context, randomBytes),
    open: (sealed, context) => open(sealed, sealKey, context),
    digest: (plain) => createHmac('sha256', sealKey).update(plain).digest('hex'),
  }
}

type Name = KeyRecord['id']

interface KeyOptions {
  store: Store
  /** Whether missing or damaged keys are replaced; otherwise they are an error. */
  newKeys: boolean
  /** Current time, in the format of records. */
  at: string
  /** Names of other servers that run on this store, and therefore have its keys. */
  others?: readonly string[]
}

interface Kind {
  make(): Buffer
  /** Null if the bytes are not a key. */
  idOf(bytes: Buffer): string | null
  /** Loss that a new key causes, for people. */
  loses: string
}

const kinds: Record<Name, Kind> = {
  'seal.key': {
    make: () => randomBytes(sealKeyBytes),
    idOf: sealKeyId,
    loses:
      'sealed secrets (credentials of hosts, secret parameters and files of tasks that run, secrets of webhooks) are lost',
  },
  'signing.key': {
    make: newSigningKey,
    idOf: signingKeyId,
    loses: 'every agent must enroll again',
  },
}

export const keyNames = ['seal.key', 'signing.key'] as const satisfies readonly Name[]

/** Fault of a key file beside this store, or null. `noted` is the id that the store knows. */
export function keyFault(
  name: Name,
  bytes: Buffer | null,
  noted: string | undefined,
  isUsed: boolean,
): string | null {
  if (bytes === null) return noted !== undefined || isUsed ? 'is missing' : null
  const id = kinds[name].idOf(bytes)
  if (id === null) return 'is damaged'
  return noted === undefined || noted === id ? null : 'is damaged, or is the key of another store'
}

/**
 * Loads the keys below `directory`, created at the first start. A store knows the ids of its keys: missing or
 * other ones are refused (contract §11 "Data"). With `newKeys` they are replaced, and everything that depends
 * on the old ones is removed from the store.
 * @throws RsmError `unavailable`, naming the file and the way out
 */
export async function loadKeys(
  directory: string,
  { store, newKeys, at, others = [] }: KeyOptions,
): Promise<{ keys: Keys; replaced: ReplacedKeys | null }> {
  const isUsed = (await store.query('users', { limit: 0 })).total > 0
  const bytesOf = {} as Record<Name, Buffer>
  const bad: Name[] = []
  const toNote: KeyRecord[] = []
  for (const name of keyNames) {
    const path = join(directory, name)
    const found = await readFile(path).catch((cause: NodeJS.ErrnoException) => {
      if (isMissing(cause)) return null
      throw new RsmError('unavailable', `${path} cannot be read: ${cause.message}`, { cause })
    })
    const noted = (await store.get('keys', name))?.keyId
    const fault = keyFault(name, found, noted, isUsed)
    if (fault !== null) {
      if (!newKeys) throw refusal(path, fault, kinds[name].loses, others)
      bad.push(name)
      if (found !== null) await rename(path, `${path}.replaced-${at.replaceAll(':', '-')}`)
    }
    const isMade = found === null || fault !== null
    const bytes = isMade ? kinds[name].make() : found
    if (isMade) {
      await mkdir(directory, { recursive: true, mode: 0o700 })
      await writeFileDurably(path, bytes, 0o600)
    }
    bytesOf[name] = bytes
    const keyId = kinds[name].idOf(bytes) ?? ''
    if (keyId !== noted) toNote.push({ id: name, keyId, notedAt: at })
  }
  const replaced =
    toNote.length > 0
      ? await note(directory, { store, newKeys, at }, toNote, bad).catch((error: unknown) => {
          // The next start records them.
          if (bad.length > 0 || !isRefusedByFullDisk(error)) throw error
          return null
        })
      : null
  return { keys: createKeys(bytesOf['seal.key'], bytesOf['signing.key']), replaced }
}

function refusal(path: string, fault: string, loses: string, [other]: readonly string[]): RsmError {
  const todo =
    other === undefined
      ? `restore it from a backup or from another server of the store, or start with a new one: \`rsm server start --new-keys\`; ${loses}`
      : `copy keys/ from ${other}, which runs on this store`
  return new RsmError('unavailable', `${path} ${fault}, and the store was used with it`, {
    hint: `nothing was changed; ${todo}`,
  })
}

function notTheFirst(path: string): RsmError {
  return new RsmError('unavailable', `${path} is not the key that another server created this store with`, {
    hint: 'all servers of a store have the same keys: copy signing.key and seal.key from that server, and start again',
  })
}

/** Records the ids, and removes whatever depends on replaced keys in the same transaction. */
function note(
  directory: string,
  { store, at }: KeyOptions,
  ids: KeyRecord[],
  bad: Name[],
): Promise<ReplacedKeys | null> {
  return store.transact(async (tx) => {
    for (const record of ids) {
      const other = (await tx.get('keys', record.id))?.keyId
      // Two servers that start on a new store at the same time create a key each.
      if (other !== undefined && other !== record.keyId && !bad.includes(record.id))
        throw notTheFirst(join(directory, record.id))
      tx.put('keys', record)
    }
    if (bad.length === 0) return null
    const agents = bad.includes('signing.key') ? await voidAgents(tx, at) : []
    const sealed = bad.includes('seal.key')
      ? await dropSealed(tx)
      : { credentials: [], tasks: [], webhooks: [] }
    return { keys: bad, agents, ...sealed }
  })
}

/** Revokes all agents, because they trust only the old key; enrolling again gives them the new one. */
async function voidAgents(tx: Transaction, at: string): Promise<string[]> {
  const hosts = (await tx.query('hosts')).items.filter(({ agent }) => agent?.tokenHash != null)
  for (const host of hosts) {
    if (host.agent === null) continue
    tx.put('hosts', { ...host, agent: { ...host.agent, tokenHash: null, enrollmentId: null, revokedAt: at } })
    await bury(tx, host, 'revoked', at)
  }
  return hosts.map(({ hostname }) => hostname)
}

/** Keeps the secret parameters of tasks: a task whose parameters cannot be opened never starts without them. */
async function dropSealed(
  tx: Transaction,
): Promise<Pick<ReplacedKeys, 'credentials' | 'tasks' | 'webhooks'>> {
  const credentials: string[] = []
  for (const host of (await tx.query('hosts')).items) {
    if (host.password === null && host.privateKey === null) continue
    tx.put('hosts', { ...host, authType: 'NONE', password: null, privateKey: null })
    credentials.push(host.hostname)
  }
  for (const file of (await tx.query('files')).items) if (file.sealedKey !== null) tx.remove('files', file.id)
  const running = await tx.find('tasks', 'status', 'RUNNING')
  const tasks = running
    .filter(({ secretParams, hasSecretFile }) => secretParams !== null || hasSecretFile)
    .map(({ id }) => id)
  const { items: webhooks } = await tx.query('webhooks')
  for (const webhook of webhooks) tx.put('webhooks', { ...webhook, secret: null })
  return { credentials, tasks, webhooks: webhooks.map(({ name }) => name) }
}
