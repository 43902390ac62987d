// Signs executables for agents and servers that were built with the public half of the key.
import { createHash, createPrivateKey, createPublicKey, sign } from 'node:crypto'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { releaseText } from '../../dist/src/core/release.js'
import { published, releaseKey } from './release.js'

/** The private key in RSM_RELEASE_KEY_FILE, as `openssl genpkey -algorithm ed25519` makes it; null where none is given. */
export function readSigningKey() {
  const file = process.env['RSM_RELEASE_KEY_FILE']
  if (!file) return null
  const key = createPrivateKey(readFileSync(file))
  if (key.asymmetricKeyType !== 'ed25519')
    throw new Error(`RSM_RELEASE_KEY_FILE: ${file} holds no Ed25519 key`)
  const own = createPublicKey(key).export({ format: 'der', type: 'spki' }).subarray(-32).toString('base64')
  if (own !== releaseKey) throw new Error(`RSM_RELEASE_KEY_FILE: set RSM_RELEASE_PUBLIC_KEY=${own} with it`)
  return key
}

/** Content of NAME.sig for an executable of these bytes. */
export function signatureOf(key, { version, machine, bytes }) {
  const sha256 = createHash('sha256').update(bytes).digest('hex')
  const about = { version, os: 'linux', arch: machine, sha256 }
  return { ...about, signature: sign(null, Buffer.from(releaseText(about)), key).toString('base64') }
}

/** Writes NAME.sig beside the executable; gives its name. */
export function signExecutable(out, name, machine, key) {
  const signed = signatureOf(key, {
    version: published.version,
    machine,
    bytes: readFileSync(join(out, name)),
  })
  writeFileSync(join(out, `${name}.sig`), `${JSON.stringify(signed)}\n`)
  return `${name}.sig`
}
