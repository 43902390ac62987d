import nacl from 'tweetnacl'
import { RsmError } from './errors.ts'

/** First byte of each sealed text, so that another cipher can follow this one. */
const version = 1
/** Separates the subkeys of sealing from any other use of the same key. */
const purpose = 'rsm sealing 1\0'

export const sealingKeyBytes = nacl.secretbox.keyLength

/**
 * Encrypts a secret for its place: `context` names the field that holds it (`hosts/17/password`). Only the same
 * context opens it, so a sealed text copied to another record is worthless. Returns base64 of version, nonce and box.
 */
export function seal(
  plain: string,
  key: Uint8Array,
  context: string,
  random: (length: number) => Uint8Array,
): string {
  const nonce = random(nacl.secretbox.nonceLength)
  const box = nacl.secretbox(new TextEncoder().encode(plain), nonce, subkey(key, context))
  return Buffer.concat([Uint8Array.of(version), nonce, box]).toString('base64')
}

/** Decrypts a secret sealed with this key for this context. Errors: `internal`. */
export function open(sealed: string, key: Uint8Array, context: string): string {
  // A copy, because a small Buffer is a view of Node's pool.
  const bytes = Uint8Array.from(Buffer.from(sealed, 'base64'))
  const boxStart = 1 + nacl.secretbox.nonceLength
  const plain =
    bytes[0] === version && bytes.length >= boxStart + nacl.secretbox.overheadLength
      ? nacl.secretbox.open(bytes.subarray(boxStart), bytes.subarray(1, boxStart), subkey(key, context))
      : null
  if (plain === null) {
    throw new RsmError('internal', `the sealed text of ${context} does not open`, {
      hint: 'the key file is not the one it was sealed with, or the text was altered or moved',
    })
  }
  return new TextDecoder('utf-8', { ignoreBOM: true }).decode(plain)
}

/** Truncated SHA-512 is safe from length extension, and the key's fixed length separates key and context. */
function subkey(key: Uint8Array, context: string): Uint8Array {
  if (key.length !== sealingKeyBytes) {
    throw new RsmError('internal', `a sealing key has ${sealingKeyBytes} bytes, not ${key.length}`)
  }
  const encode = new TextEncoder()
  const material = Uint8Array.from([...encode.encode(purpose), ...key, ...encode.encode(context)])
  return nacl.hash(material).subarray(0, sealingKeyBytes)
}
