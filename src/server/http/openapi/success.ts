import type { Media, Operation } from '../operation/operation.ts'
import type { Components } from './components.ts'
import { exampleOf, type Schema } from './schema.ts'

const entityTag = { ETag: { description: 'Names these bytes (RFC 9110 §8.8.3)', schema: { type: 'string' } } }

function eventsSchema(events: Readonly<Record<string, Schema>>, { refer }: Components): object {
  const properties = Object.entries(events).map(([name, data]) => [name, refer(data)] as const)
  return {
    type: 'object',
    description: 'Of one event: its name, and its `data`.',
    properties: Object.fromEntries(properties),
  }
}

/** The success of an operation: the envelope around its answer, and what comes in other media types. */
export function success(declared: Operation, components: Components): Record<string, object> {
  const { answer, created, unchanging, media = {} } = declared
  const code = created ? 201 : 200
  const message = created ? 'Created' : 'OK'
  const content: Record<string, object> = {}
  if (answer) {
    const schema = {
      type: 'object',
      required: ['code', 'message', 'data'],
      properties: {
        code: { type: 'integer', const: code },
        message: { type: 'string' },
        data: components.refer(answer),
      },
    }
    content['application/json'] = { schema, example: { code, message, data: exampleOf(answer) } }
  }
  for (const [type, says] of Object.entries(media)) {
    const { holds, example, events }: Partial<Media> = typeof says === 'string' ? { holds: says } : says
    content[type] = {
      schema: {
        type: type === 'application/json' ? 'object' : 'string',
        description: holds,
        // OpenAPI 3.1 has no word for the items of a stream; so a client gets names for what is in them.
        ...(events && { contentMediaType: type, contentSchema: eventsSchema(events, components) }),
      },
      ...(example !== undefined && { example }),
    }
  }
  return {
    [code]: { description: message, ...(unchanging && { headers: entityTag }), content },
    ...(unchanging && {
      304: { description: 'What If-None-Match names is what there is', headers: entityTag },
    }),
  }
}
