import { createHash } from 'node:crypto'
import { createReadStream, createWriteStream } from 'node:fs'
import { stat } from 'node:fs/promises'
import { join } from 'node:path'
import { pipeline } from 'node:stream/promises'
import type { Client } from '../../client/client.ts'
import { RsmError } from '../../core/errors.ts'
import { architectures, buildName, buildOf } from '../../core/release.ts'
import { ownExecutable } from '../../disk/own-files.ts'
import type { Executable } from '../../ssh/conversation.ts'
import { sanitizeLine } from '../text/sanitize.ts'

/** Fetches an executable on first use. Errors: `not_found` if there is none; those of API requests. */
type Executables = (machine: string) => Promise<Executable>

async function fileWith(path: string, sha256: string): Promise<Executable> {
  const { size } = await stat(path)
  return { sha256, size, open: () => createReadStream(path) }
}

async function sumOf(path: string): Promise<string> {
  const hash = createHash('sha256')
  await pipeline(createReadStream(path), hash)
  return hash.digest('hex')
}

/** SHA-256 of the server's executables by name; `why` if it offers none at all. */
async function readSums(client: Client): Promise<{ sums: Map<string, string>; why: RsmError | null }> {
  try {
    const answer = await client.api.raw('GET', '/dl/SHA256SUMS')
    const lines = ('text' in answer ? answer.text : '').matchAll(/^([0-9a-f]{64}) {2}(\S+)$/gm)
    return { sums: new Map([...lines].map(([, sum = '', name = '']) => [name, sum])), why: null }
  } catch (error) {
    // Without TLS, and not on loopback.
    if (error instanceof RsmError && error.code === 'not_found') return { sums: new Map(), why: error }
    throw error
  }
}

/** Downloads to a file in `directory`, which only this user can write to. */
async function fetched(client: Client, name: string, sha256: string, directory: string): Promise<Executable> {
  const path = join(directory, name)
  const hash = createHash('sha256')
  const body = await client.api.download(`/dl/${name}`, 'application/octet-stream')
  body.on('data', (chunk: Buffer) => hash.update(chunk))
  await pipeline(body, createWriteStream(path, { flags: 'wx', mode: 0o600 }))
  if (hash.digest('hex') !== sha256)
    throw new RsmError(
      'unavailable',
      `the sha256 of ${client.api.url}/dl/${name} differs from the one that the server reports`,
      {
        hint: 'nothing was copied; run it again',
      },
    )
  return fileWith(path, sha256)
}

/**
 * Executables of the server's release; this program itself if its sha256, or without one its version,
 * matches. Errors: `not_found` if there is none.
 */
export async function openExecutables(
  client: Client,
  directory: string,
  version: string,
  own: string | undefined = ownExecutable(),
): Promise<Executables> {
  const { sums, why } = await readSums(client)
  const isOfServer = async () => (await client.server.info())?.version === version
  const ownName = own === undefined ? undefined : buildName(process.arch as (typeof architectures)[number])
  const mayBeOwn = ownName !== undefined && !sums.has(ownName) && (await isOfServer())
  const names = [...sums.keys()].filter((name) => buildOf(name)?.isXz === false)
  if (mayBeOwn) names.push(ownName)
  if (names.length === 0)
    throw (
      why ??
      new RsmError('not_found', 'the server has no executable to copy', {
        hint: 'on its machine: rsm server releases add FILE',
      })
    )

  async function open(name: string): Promise<Executable> {
    const wanted = sums.get(name)
    if (own !== undefined && name === ownName) {
      const sum = await sumOf(own)
      if (wanted === undefined || sum === wanted) return fileWith(own, sum)
    }
    if (wanted !== undefined) return fetched(client, name, wanted, directory)
    throw new RsmError('not_found', `the server has no ${name}, only ${names.join(', ')}`, {
      hint: `on its machine: rsm server releases add ${name}`,
    })
  }

  const opened = new Map<string, Promise<Executable>>()
  return async (machine) => {
    const arch = architectures.find((each) => each === machine)
    if (arch === undefined)
      throw new RsmError('unavailable', `there is no executable for this machine: ${sanitizeLine(machine)}`)
    const name = buildName(arch)
    const executable = opened.get(name) ?? open(name)
    opened.set(name, executable)
    return executable
  }
}
