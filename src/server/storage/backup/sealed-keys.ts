import { createCipheriv, createDecipheriv, randomBytes, scrypt } from 'node:crypto'
import { RsmError } from '../../../core/errors.ts'

/** 64 MiB and about 0.2 s for each guess of a passphrase (RFC 7914 §2). */
const cost = { N: 65_536, r: 8, p: 1 }
const memory = 256 * 1024 * 1024

interface Sealed {
  readonly format: 1
  readonly kdf: 'scrypt'
  readonly N: number
  readonly r: number
  readonly p: number
  readonly salt: string
  readonly cipher: 'aes-256-gcm'
  readonly nonce: string
  readonly tag: string
  readonly data: string
}

export type KeyFiles = Record<string, Buffer>

function derive(
  passphrase: string,
  salt: Buffer,
  { N, r, p }: Pick<Sealed, 'N' | 'r' | 'p'>,
): Promise<Buffer> {
  return new Promise((resolve, reject) => {
    scrypt(passphrase.normalize('NFKC'), salt, 32, { N, r, p, maxmem: memory }, (error, key) =>
      error ? reject(error) : resolve(key),
    )
  })
}

/** Seals keys for a backup; `storeId` binds them to their store. */
export async function sealKeys(keys: KeyFiles, passphrase: string, storeId: string): Promise<string> {
  const salt = randomBytes(16)
  const nonce = randomBytes(12)
  const cipher = createCipheriv('aes-256-gcm', await derive(passphrase, salt, cost), nonce)
  cipher.setAAD(Buffer.from(storeId))
  const plain = Object.fromEntries(
    Object.entries(keys).map(([name, bytes]) => [name, bytes.toString('base64')]),
  )
  const data = Buffer.concat([cipher.update(JSON.stringify(plain)), cipher.final()])
  const sealed: Sealed = {
    format: 1,
    kdf: 'scrypt',
    ...cost,
    salt: salt.toString('base64'),
    cipher: 'aes-256-gcm',
    nonce: nonce.toString('base64'),
    tag: cipher.getAuthTag().toString('base64'),
    data: data.toString('base64'),
  }
  return `${JSON.stringify(sealed)}\n`
}

/** Errors: `invalid` for a wrong passphrase, and for altered bytes. */
export async function openKeys(bytes: Uint8Array, passphrase: string, storeId: string): Promise<KeyFiles> {
  const sealed = JSON.parse(Buffer.from(bytes).toString('utf8')) as Sealed
  if (sealed.format !== 1 || sealed.kdf !== 'scrypt' || sealed.cipher !== 'aes-256-gcm')
    throw new RsmError('unavailable', 'the keys in the backup were sealed by a newer rsm', {
      hint: 'restore it with that rsm',
    })
  const decode = (field: string) => Buffer.from(field, 'base64')
  const { N, r, p } = sealed
  try {
    const key = await derive(passphrase, decode(sealed.salt), { N, r, p })
    const decipher = createDecipheriv('aes-256-gcm', key, decode(sealed.nonce), { authTagLength: 16 })
    decipher.setAAD(Buffer.from(storeId))
    decipher.setAuthTag(decode(sealed.tag))
    const plain = Buffer.concat([decipher.update(decode(sealed.data)), decipher.final()]).toString('utf8')
    const files = JSON.parse(plain) as Record<string, string>
    return Object.fromEntries(Object.entries(files).map(([name, text]) => [name, decode(text)]))
  } catch (cause) {
    throw new RsmError('invalid', 'the passphrase does not open the keys of the backup', {
      hint: 'use the passphrase that the backup was made with, or omit --passphrase-file and copy keys/ yourself',
      cause,
    })
  }
}
