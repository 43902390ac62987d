import { buildApp } from '../../../src/server/http/app.ts'
import type { Operation } from '../../../src/server/http/operation.ts'
import { registerRoutes } from '../../../src/server/routes/routes.ts'

export interface RegisteredOperation {
  method: string
  url: string
  operation: Operation
}

/** The operations of the application, as its routes declare them. */
export function operationsOfTheApp(): RegisteredOperation[] {
  const found: RegisteredOperation[] = []
  buildApp({} as never, (app) => {
    app.addHook('onRoute', ({ method, url, config }) => {
      // A HEAD exists beside every GET.
      if (config?.operation === undefined) throw new Error(`${url} is not a declared operation`)
      for (const one of [method].flat())
        if (one !== 'HEAD') found.push({ method: one, url, operation: config.operation })
    })
    registerRoutes(app, { services: { tasks: {} } } as never)
  })
  return found
}
