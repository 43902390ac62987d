import type { Operation } from '../routes/operation.ts'
import type { Components } from './components.ts'
import { exampleOf } from './schema.ts'

const entityTag = { ETag: { description: 'Names these bytes (RFC 9110 §8.8.3)', schema: { type: 'string' } } }

/** The success of an operation: the envelope around its answer, and what comes in other media types. */
export function success(declared: Operation, components: Components): Record<string, object> {
  const { answer, created, unchanging, media = {} } = declared
  const code = created ? 201 : 200
  const message = created ? 'Created' : 'OK'
  const content: Record<string, object> = {}
  if (answer) {
    const data = exampleOf(answer)
    const schema = {
      type: 'object',
      required: ['code', 'message', 'data'],
      properties: {
        code: { type: 'integer', const: code },
        message: { type: 'string' },
        data: components.refer(answer),
      },
    }
    content['application/json'] = {
      schema,
      ...(data !== undefined && { example: { code, message, data } }),
    }
  }
  for (const [type, says] of Object.entries(media)) {
    const { holds, example } = typeof says === 'string' ? { holds: says, example: undefined } : says
    content[type] = {
      schema: { type: type === 'application/json' ? 'object' : 'string', description: holds },
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
