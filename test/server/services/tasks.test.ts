import test from 'ava'
import { tasksContract } from '../../contracts/tasks.ts'
import { servicesOnStore } from '../../helpers/servers/services.ts'

tasksContract(test, 'on the store,', servicesOnStore)
