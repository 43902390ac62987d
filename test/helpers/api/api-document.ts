import { Ajv2020 } from 'ajv/dist/2020.js'
import type { TestServer } from '../servers/server.ts'

/** An operation as a client finds it in the document. */
export interface DocumentedOperation {
  id: string
  method: string
  /** As written in the document: `/api/hosts/{id}`. */
  path: string
  security: object[]
  parameters: { name: string; in: string }[]
  hasBody: boolean
  /** Its body is bytes, not JSON. */
  takesBytes: boolean
  /** Media types by status, as in the document. */
  media: Record<string, string[]>
}

/** A response, as far as the document describes it. */
export interface Received {
  status: number
  contentType: string
  text: string
}

export interface ApiDocument {
  document: any
  operations: DocumentedOperation[]
  /** The mismatch between a response and the document: its status, media type or body; null if none. */
  faultOf: (operation: DocumentedOperation, received: Received) => string | null
  /** The mismatch between a value and a schema of the document; null if none. */
  faultOfSchema: (name: string, value: unknown) => string | null
}

const pointer = (...steps: string[]) =>
  steps.map((step) => `/${step.replaceAll('~', '~0').replaceAll('/', '~1')}`).join('')

/** Closes objects of the document to unknown fields, so that it cannot lag behind the server. */
function closed(part: any): any {
  if (typeof part !== 'object' || part === null) return part
  if (Array.isArray(part)) return part.map(closed)
  const entries = Object.entries(part).map(([key, value]) => [key, key === 'example' ? value : closed(value)])
  const copy = Object.fromEntries(entries)
  if (copy.type === 'object' && copy.properties && copy.additionalProperties === undefined)
    copy.additionalProperties = false
  return copy
}

const ipv4 = /^\d{1,3}(\.\d{1,3}){3}$/

/** Complete events in a piece of a stream. */
function eventsOf(text: string): { event: string; data: unknown }[] {
  return [...text.matchAll(/^event: (\w+)\n(?:id: .*\n)?data: (.*)\n\n/gm)].map(
    ([, event = '', data = '']) => ({
      event,
      data: JSON.parse(data) as unknown,
    }),
  )
}

export async function fetchDocument(server: Pick<TestServer, 'url'>): Promise<ApiDocument> {
  const response = await fetch(`${server.url}/api/openapi.json`)
  const document = (await response.json()) as any
  const ajv = new Ajv2020({ allErrors: true, strict: false })
  ajv.addFormat('date-time', (text) => !Number.isNaN(Date.parse(text)) && text.endsWith('Z'))
  ajv.addFormat('ipv4', ipv4)
  ajv.addSchema(closed(document), 'api')
  const referred = (found: any) =>
    found?.$ref === undefined ? found : document.components.responses[found.$ref.split('/').at(-1)]
  const operations: DocumentedOperation[] = []
  for (const [path, methods] of Object.entries<any>(document.paths))
    for (const [method, operation] of Object.entries<any>(methods)) {
      const media: Record<string, string[]> = {}
      for (const [status, found] of Object.entries<any>(operation.responses))
        media[status] = Object.keys(referred(found).content ?? {})
      operations.push({
        id: operation.operationId,
        method: method.toUpperCase(),
        path,
        security: operation.security,
        parameters: operation.parameters ?? [],
        hasBody: operation.requestBody !== undefined,
        takesBytes: operation.requestBody?.content['application/octet-stream'] !== undefined,
        media,
      })
    }

  function faultOf({ method, path, id }: DocumentedOperation, { status, contentType, text }: Received) {
    const steps = ['paths', path, method.toLowerCase(), 'responses', String(status)]
    const told = document.paths[path][method.toLowerCase()].responses[status]
    if (told === undefined) return `${id} does not document ${status}: ${text.slice(0, 300)}`
    const at =
      told.$ref === undefined ? steps : ['components', 'responses', String(told.$ref.split('/').at(-1))]
    const { content } = referred(told)
    if (content === undefined) return text === '' ? null : `${id} ${status} has a body`
    const media = contentType.split(';')[0] ?? ''
    if (content[media] === undefined) return `${id} does not document ${media} with ${status}`
    const where = pointer(...at, 'content', media, 'schema')
    const wrong = (value: unknown, within = ''): string | null => {
      const validate = ajv.getSchema(`api#${where}${within}`)
      if (!validate) return `${id} ${status} does not document ${media} ${within}`
      const told = JSON.stringify(value)
      return validate(value) ? null : `${id} ${status}: ${ajv.errorsText(validate.errors)} in ${told}`
    }
    if (media !== 'text/event-stream') return wrong(media === 'application/json' ? JSON.parse(text) : text)
    const faults = eventsOf(text).map(({ event, data }) =>
      wrong(data, pointer('contentSchema', 'properties', event)),
    )
    if (faults.length === 0) return `${id} sent no event`
    return faults.find((fault) => fault !== null) ?? null
  }

  function faultOfSchema(name: string, value: unknown): string | null {
    const validate = ajv.getSchema(`api#${pointer('components', 'schemas', name)}`)
    if (!validate) return `there is no schema ${name}`
    return validate(value) ? null : `${name}: ${ajv.errorsText(validate.errors)}`
  }

  return { document, operations, faultOf, faultOfSchema }
}
