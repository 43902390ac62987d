import { RsmError } from '../../core/errors.ts'
import type { AppInstance } from '../app.ts'
import type { RouteDependencies } from './routes.ts'

export function healthRoutes(app: AppInstance, deps: RouteDependencies): void {
  app.get(
    '/api/health',
    { config: { allow: { open: true } }, schema: { summary: 'Whether the server lives' } },
    () => ({
      status: 'UP',
    }),
  )
  app.get(
    '/api/ready',
    { config: { allow: { open: true } }, schema: { summary: 'Whether it takes work' } },
    () => {
      if (!deps.ready())
        throw new RsmError('unavailable', 'The server takes no work just now', { retryAfter: 5 })
      return { status: 'UP' }
    },
  )
}
