/** What the agent can do beside talking. Whatever a tool returns is shown to the model. */
import { tool } from "@langchain/core/tools";
import { z } from "zod";

const getWeather = tool(({ place }) => `It is sunny in ${place}, ${(place.length * 7) % 30} °C.`, {
  name: "get_weather",
  description: "The weather in a place.",
  schema: z.object({ place: z.string().describe("A city or a region, e.g. Paris") }),
});

const OPERATIONS = {
  "+": (left: number, right: number) => left + right,
  "-": (left: number, right: number) => left - right,
  "*": (left: number, right: number) => left * right,
  "/": (left: number, right: number) => left / right,
};

const calculate = tool(
  ({ left, operator, right }) => `${left} ${operator} ${right} = ${OPERATIONS[operator](left, right)}`,
  {
    name: "calculate",
    description: "Adds, subtracts, multiplies or divides two numbers.",
    schema: z.object({ left: z.number(), operator: z.enum(["+", "-", "*", "/"]), right: z.number() }),
  },
);

export const tools = [getWeather, calculate];
