import io.debezium.engine.ChangeEvent;
import io.debezium.engine.DebeziumEngine;
import io.debezium.engine.format.Json;
import java.io.*;
import java.nio.charset.StandardCharsets;
import java.nio.file.*;
import java.util.*;
import java.util.concurrent.*;

/** Writes what Debezium's connector makes of changes: properties file, output file, file that ends it. */
public class Record {
    public static void main(String[] arguments) throws Exception {
        Properties properties = new Properties();
        try (Reader in = new FileReader(arguments[0])) { properties.load(in); }
        Writer out = Files.newBufferedWriter(Path.of(arguments[1]), StandardCharsets.UTF_8);
        DebeziumEngine<ChangeEvent<String, String>> engine = DebeziumEngine.create(Json.class).using(properties)
            .notifying(event -> {
                try {
                    out.write(event.destination() + "\t" + event.key() + "\t" + event.value() + "\n");
                    out.flush();
                } catch (IOException error) { throw new UncheckedIOException(error); }
            })
            .using((success, message, error) -> { if (error != null) error.printStackTrace(); }).build();
        ExecutorService runner = Executors.newSingleThreadExecutor();
        runner.execute(engine);
        while (!Files.exists(Path.of(arguments[2]))) Thread.sleep(100);
        engine.close();
        runner.shutdown();
        System.exit(0);
    }
}
