import { request } from 'node:http'
import { text as readText } from 'node:stream/consumers'
import { codeOfStatus, RsmError } from '../../core/errors.ts'
import type { ControlCalls, ControlName } from '../../core/protocol/control.ts'
import { controlSocket } from '../../disk/control-socket.ts'

/** How long a server may take to answer, in milliseconds. */
const patience = 60_000

interface Envelope {
  readonly message: string
  readonly hint?: string
  readonly data: object
}

function exchange(
  socketPath: string,
  name: string,
  input: object,
): Promise<{ status: number; text: string }> {
  return new Promise((resolve, reject) => {
    const call = request({ socketPath, path: `/${name}`, method: 'POST', timeout: patience }, (response) => {
      const status = response.statusCode ?? 500
      readText(response).then((text) => resolve({ status, text }), reject)
    })
    call.on('timeout', () => call.destroy(new Error(`no answer in ${patience / 1000} s`)))
    call.on('error', reject)
    call.end(JSON.stringify(input))
  })
}

function explain(error: unknown, dataDir: string): RsmError {
  if (error instanceof RsmError) return error
  const { code, message } = error as NodeJS.ErrnoException
  if (code === 'ENOENT' || code === 'ECONNREFUSED' || code === 'ENOTDIR')
    return new RsmError('unreachable', `no server runs on the data directory ${dataDir}`, {
      hint: 'name the directory of the server with --data-dir (RSM_DATA_DIR), or start the server',
      cause: error,
    })
  if (code === 'EACCES' || code === 'EPERM')
    return new RsmError('forbidden', `the data directory ${dataDir} belongs to another user`, {
      hint: 'run this as the user that the server runs as, or as root',
      cause: error,
    })
  return new RsmError('unreachable', `the server on ${dataDir} does not answer: ${message}`, { cause: error })
}

/** Asks the server that runs on a data directory. Errors: `unreachable` where none does, `forbidden`, and the server's own. */
export async function control<N extends ControlName>(
  dataDir: string,
  name: N,
  input: ControlCalls[N]['input'],
): Promise<ControlCalls[N]['answer']> {
  const socket = await controlSocket(dataDir).catch((error: unknown) => {
    throw explain(error, dataDir)
  })
  try {
    const { status, text } = await exchange(socket.path, name, input).catch((error: unknown) => {
      throw explain(error, dataDir)
    })
    const { message, hint, data } = JSON.parse(text) as Envelope
    if (status !== 200) throw new RsmError(codeOfStatus(status), message, hint === undefined ? {} : { hint })
    return data as ControlCalls[N]['answer']
  } finally {
    await socket.release()
  }
}
