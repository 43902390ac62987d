import type { Client } from '../../client/client.ts'
import { RsmError } from '../../core/errors.ts'
import { compareVersions } from '../../core/release.ts'

/** How long a server may take to say how old it is, milliseconds. */
const patience = 5000

/** The fields that a server refused because it does not know them; empty if it refused anything else. */
export function unknownFields({ fields }: RsmError): string[] {
  return fields.every(({ message }) => message === 'unknown field') ? fields.map(({ field }) => field) : []
}

/** The path, field or group that an older server does not know; null if it refused something else. */
function unknownTo(error: RsmError): string | null {
  const { code, message } = error
  // What this program sends by itself is a method that its own version has.
  if (code === 'method_not_allowed') return 'this call'
  const [, path] = /^No such path(?:: (\S+))?$/.exec(message) ?? []
  if (message.startsWith('No such path')) return path ?? 'this call'
  if (/^no such cluster: reachable\b/.test(message)) return '@reachable'
  return unknownFields(error).join(', ') || null
}

/**
 * Explains an error that people can do something about: if the server does not know what this program sends by itself, it is
 * probably older, and is asked for its version.
 */
export async function blameOlderServer(
  error: RsmError,
  version: string,
  client: () => Promise<Client>,
): Promise<RsmError> {
  const unknown = unknownTo(error)
  if (unknown === null) return error
  try {
    const info = await (await client()).until(AbortSignal.timeout(patience)).server.info()
    if (info !== null && compareVersions(info.version, version)?.isOlder !== true) return error
    const age = info === null ? '' : ` (${info.version})`
    return new RsmError(error.code, `the server is older${age}, it does not know ${unknown}`, {
      fields: error.fields,
      hint: `this is rsm ${version}: upgrade the server, or leave that out`,
      cause: error,
    })
  } catch {
    return error
  }
}
