import type { Client } from '../../client/client.ts'
import { RsmError } from '../../core/errors.ts'
import { compareVersions } from '../../core/release.ts'

/** Timeout for asking the server for its version, in milliseconds. */
const patience = 5000

/** Fields rejected as unknown; empty if the server rejected anything else. */
export function unknownFields({ fields }: RsmError): string[] {
  return fields.every(({ message }) => message === 'unknown field') ? fields.map(({ field }) => field) : []
}

/** The path, field or group unknown to the server; null for any other error. */
function unknownTo(error: RsmError): string | null {
  const { code, message } = error
  // Commands send only methods that servers of their own version accept.
  if (code === 'method_not_allowed') return 'this call'
  const [, path] = /^No such path(?:: (\S+))?$/.exec(message) ?? []
  if (message.startsWith('No such path')) return path ?? 'this call'
  if (/^no such cluster: reachable\b/.test(message)) return '@reachable'
  return unknownFields(error).join(', ') || null
}

/** Explains an error about an unknown path, field or group if the server is older. Returns other errors unchanged. */
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
    return new RsmError(error.code, `the server is older${age} and does not know ${unknown}`, {
      fields: error.fields,
      hint: `this is rsm ${version}: upgrade the server, or leave it out`,
      cause: error,
    })
  } catch {
    return error
  }
}
