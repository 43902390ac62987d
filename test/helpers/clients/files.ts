import { createHash } from 'node:crypto'
import type { File } from '../../../src/core/protocol/http/files.ts'
import type { Identity } from '../agents/scripted-agent.ts'
import type { TestServer } from '../servers/server.ts'

type Server = Pick<TestServer, 'url' | 'token'>
type Bytes = string | Uint8Array | ReadableStream<Uint8Array>
type Init = NonNullable<Parameters<typeof fetch>[1]>

export const sha256Of = (bytes: string | Uint8Array): string =>
  createHash('sha256').update(bytes).digest('hex')

/** Sends bytes as the body; `data` is that of the envelope. */
export async function sendBytes(
  { url, token }: Server,
  method: 'POST' | 'PUT',
  path: string,
  bytes?: Bytes,
): Promise<{ status: number; data: any; body: any }> {
  const response = await fetch(url + path, {
    method,
    headers: {
      authorization: `Bearer ${token}`,
      ...(bytes !== undefined && { 'content-type': 'application/octet-stream' }),
    },
    ...(bytes !== undefined && { body: bytes as NonNullable<Init['body']>, duplex: 'half' }),
  })
  const body = (await response.json()) as { data: any }
  return { status: response.status, data: body.data, body }
}

/** Uploads in one request; returns the file. */
export async function upload(server: Server, bytes: string | Uint8Array, query = ''): Promise<File> {
  const { status, data, body } = await sendBytes(server, 'POST', `/api/files?${query}`, bytes)
  if (status !== 201) throw new Error(JSON.stringify(body))
  return data
}

/** Reads a file as its agent does. */
export async function agentReads(
  { url }: Pick<TestServer, 'url'>,
  { token }: Pick<Identity, 'token'>,
  fileId: string,
  range?: string,
): Promise<{ status: number; bytes: Buffer; headers: Headers }> {
  const response = await fetch(`${url}/api/agent/files/${fileId}`, {
    headers: { authorization: `Bearer ${token}`, ...(range !== undefined && { range }) },
  })
  const bytes = Buffer.from(await response.arrayBuffer())
  return { status: response.status, bytes, headers: response.headers }
}
