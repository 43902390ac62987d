import { createComponents } from './components.ts'
import { conventions, securitySchemes, tagDescriptions } from './description.ts'
import { errorComponent, errorSchemas, type ResponseErrorCode } from './errors.ts'
import { describeOperation, type RoutedOperation, templated } from './operations.ts'

/**
 * The API's own document: OpenAPI 3.1 (contract §3).
 *
 * It is made from the declared operations and the very schemas that validate. @fastify/swagger would not spare any of
 * this: it reads `schema.response`, which Fastify would compile for each route, wants names as `$id`, which ajv would
 * register in each of the two validators, and knows neither the envelope nor which errors follow from a declaration.
 */
export function apiDocument(operations: readonly RoutedOperation[], version: string): object {
  const components = createComponents()
  const used = new Set<ResponseErrorCode>()
  const paths: Record<string, Record<string, object>> = {}
  for (const routed of operations) {
    const { description, errors } = describeOperation(routed, components)
    for (const code of errors) used.add(code)
    const path = (paths[templated(routed.url)] ??= {})
    path[routed.method.toLowerCase()] = description
  }
  const tags = Object.entries(tagDescriptions)
    .filter(([name]) => operations.some(({ operation }) => operation.tag === name))
    .map(([name, description]) => ({ name, description }))
  const byName = ([a]: [string, unknown], [b]: [string, unknown]) => (a < b ? -1 : 1)
  const schemas = Object.entries({ ...components.schemas, ...errorSchemas }).sort(byName)
  return {
    openapi: '3.1.0',
    info: { title: 'rsm', version, description: conventions, license: { name: 'MIT', identifier: 'MIT' } },
    servers: [{ url: '/', description: 'The server that this document comes from' }],
    tags,
    paths,
    components: {
      securitySchemes,
      responses: Object.fromEntries([...used].sort().map(errorComponent)),
      schemas: Object.fromEntries(schemas),
    },
  }
}
