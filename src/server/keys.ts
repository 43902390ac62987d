import {
  createHash,
  createHmac,
  createPrivateKey,
  createPublicKey,
  generateKeyPairSync,
  randomBytes,
  sign,
} from 'node:crypto'
import { mkdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { RsmError } from '../core/errors.ts'
import { open, seal } from '../core/sealing.ts'
import { signedBytes } from '../core/signing.ts'
import { writeFileDurably } from '../disk/durable.ts'

/** How long a signature holds, in milliseconds of the server's clock (contract §6). */
export const signatureLife = 5 * 60_000

/** The server's own keys: files of mode 0600, apart from the store, so that a stolen store tells nothing (S04). */
export interface Keys {
  /** Ed25519 public key, 32 bytes, base64: what agents pin when they register. */
  readonly serverKey: string
  readonly keyId: string
  /** Adds `expiry`, `keyId` and `signature` to a payload for one agent (contract §6). */
  sign<P extends object>(
    type: 'EXECUTE_SCRIPT' | 'TERMINAL_OPEN',
    agentId: string,
    payload: P,
    expiry: string,
  ): P & { expiry: string; keyId: string; signature: string }
  /** `context` binds the sealed text to the record that holds it. */
  seal(plain: string, context: string): string
  open(sealed: string, context: string): string
  /** A keyed digest, hex: tells whether a text is the same without letting a stolen store be guessed at (S04). */
  digest(plain: string): string
}

async function readOrCreate(path: string, create: () => Buffer): Promise<Buffer> {
  try {
    return await readFile(path)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error
    const made = create()
    await writeFileDurably(path, made, 0o600)
    return made
  }
}

/** Reads the keys below `directory`, or makes them at the first start. */
export async function loadKeys(directory: string): Promise<Keys> {
  await mkdir(directory, { recursive: true, mode: 0o700 })
  const sealKey = await readOrCreate(join(directory, 'seal.key'), () => randomBytes(32))
  if (sealKey.length !== 32)
    throw new RsmError('unavailable', `${join(directory, 'seal.key')} is damaged; put back its backup`)
  const pem = await readOrCreate(join(directory, 'signing.key'), () =>
    Buffer.from(generateKeyPairSync('ed25519').privateKey.export({ format: 'pem', type: 'pkcs8' })),
  )
  const privateKey = createPrivateKey(pem)
  const spki = createPublicKey(privateKey).export({ format: 'der', type: 'spki' })
  const publicKey = spki.subarray(-32)
  const keyId = createHash('sha256').update(publicKey).digest('hex').slice(0, 16)
  return {
    serverKey: publicKey.toString('base64'),
    keyId,
    sign(type, agentId, payload, expiry) {
      const full = { ...payload, expiry, keyId }
      const signature = sign(null, signedBytes(type, agentId, full), privateKey).toString('base64')
      return { ...full, signature }
    },
    seal: (plain, context) => seal(plain, sealKey, context, randomBytes),
    open: (sealed, context) => open(sealed, sealKey, context),
    digest: (plain) => createHmac('sha256', sealKey).update(plain).digest('hex'),
  }
}
